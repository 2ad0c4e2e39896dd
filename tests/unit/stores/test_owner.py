"""Two installations of James do not share our keyspaces: the second is refused with one line."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast
from unittest.mock import MagicMock

import pytest

from checkpoints.cassandra import CassandraOwner, Store
from checkpoints.schema.upgrade import upgrade
from deploy.embedded.ports import free_ports
from reconcilers.words.errors import Misconfigured, Refused, Unreachable
from streaming import app
from streaming.commands.doctor import command as doctor
from streaming.commands.running import canary
from streaming.commands.running.canary import warn_of_another
from streaming.settings import CassandraSettings, Settings
from streaming.tables import own_keyspace
from tests.builders.failing import unreachable
from tests.fakes.checkpoints.owner import MemoryOwner
from tests.fakes.schema_store import MemorySchemaStore

OTHER = Settings(cassandra=CassandraSettings(keyspace="james_two"))


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> MemoryOwner:
    """That of our own keyspace, which has every step of this version."""
    kept, owner = MemorySchemaStore("reconciler"), MemoryOwner()
    upgrade(kept)
    monkeypatch.setattr(own_keyspace, "_store", lambda settings: kept)
    monkeypatch.setattr(own_keyspace, "CassandraOwner", lambda store: owner)
    monkeypatch.setattr(canary, "has_table", lambda settings: True)
    cluster = SimpleNamespace(schema=lambda _: {}, store=lambda _: kept)
    monkeypatch.setattr(doctor, "logged_in", lambda _: nullcontext(cluster))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    for name, port in zip(("PORT", "CANARY_PORT", "SWEEP_PORT"), free_ports(), strict=False):
        monkeypatch.setenv(f"RECONCILE_METRICS__{name}", str(port))
    return owner


def test_the_first_stream_takes_it(owner: MemoryOwner) -> None:
    own_keyspace.make_own(CassandraSettings())
    assert owner.owner() == "apache_james"
    own_keyspace.make_own(CassandraSettings())


@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize(
    "command",
    [
        ["stream"],
        ["canary"],
        ["status"],
        ["findings"],
        ["pause"],
        ["resume"],
        ["sweep"],
        ["doctor", "--off"],
        ["doctor", "--fix"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_every_command_refuses_that_of_another_installation_with_one_line(
    command: list[str], owner: MemoryOwner, capsys: pytest.CaptureFixture[str]
) -> None:
    owner.claim("james_two")
    assert app.main(command) == 2
    told = capsys.readouterr()
    assert told.err.startswith("reconcile: keyspace reconciler is that of the reconciler of james_")
    assert "set cassandra.own_keyspace to one that only apache_james has" in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_nothing_is_made_in_that_of_another_installation(
    owner: MemoryOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    monkeypatch.setattr(own_keyspace, "finish", lambda *about: made.append(about))
    owner.claim("james_two")
    with pytest.raises(Misconfigured):
        own_keyspace.make_own(CassandraSettings())
    assert made == []


def test_of_two_that_begin_at_once_one_is_refused(
    owner: MemoryOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_keyspace, "finish", lambda *_: owner.claim("james_two"))
    with pytest.raises(Misconfigured):
        own_keyspace.make_own(CassandraSettings())


def test_one_of_a_version_that_knew_no_owner_is_taken(
    owner: MemoryOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_no_table() -> str:
        raise Refused("unconfigured table owner")

    monkeypatch.setattr(owner, "owner", has_no_table)
    own_keyspace.make_own(CassandraSettings())
    assert owner.claim("james_two") == "apache_james"


def test_doctor_goes_on_where_the_owner_cannot_be_asked(
    owner: MemoryOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "logged_in", unreachable)
    monkeypatch.setattr(doctor, "examine", lambda settings: ())
    assert app.main(["doctor"]) == 0


# --- the row in Cassandra ------------------------------------------------------------------------


@dataclass
class Row:
    """The one row of `owner`, None where it is missing; it takes a condition as Cassandra does."""

    cells: dict[str, object] | None

    def rows(self, _doing: str, cql: str, *values: object) -> list[tuple[object, ...]]:
        if cql.startswith("SELECT"):
            return [] if self.cells is None else [(self.cells.get("james"),)]
        if cql.endswith("IF NOT EXISTS"):
            applied = self.cells is None
        else:
            assert cql.endswith("IF james = null")
            applied = (self.cells or {}).get("james") is None
        if applied:
            self.cells = {**(self.cells or {}), "james": values[0]}
        return [(applied,)]

    def claim(self, james: str) -> str:
        prepared = dict.fromkeys(("prepare_serial", "prepare_conditional"), str)
        store = SimpleNamespace(rows=self.rows, **prepared)
        return CassandraOwner(cast(Store, store)).claim(james)


@pytest.mark.parametrize("cells", [None, {"generation": 1}], ids=["no row", "a generation alone"])
def test_a_row_that_names_nobody_is_taken_by_the_first_alone(
    cells: dict[str, object] | None,
) -> None:
    """A generation makes the row where the table was truncated."""
    row = Row(cells)
    assert row.claim("apache_james") == "apache_james"
    assert row.claim("james_two") == "apache_james"
    assert row.cells == {**(cells or {}), "james": "apache_james"}


# --- canaries ------------------------------------------------------------------------------------


class Taken:
    """A table of canaries that this James's keyspace has; or it cannot be asked."""

    def __init__(self, owner: str | Exception) -> None:
        self._owner = owner

    def claim(self) -> str:
        if isinstance(self._owner, Exception):
            raise self._owner
        return self._owner


def test_canaries_of_another_installation_are_said(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_another(Taken("james_two"), OTHER)
    assert not caplog.records
    warn_of_another(Taken("apache_james"), OTHER)
    (said,) = caplog.messages
    assert said.startswith("keyspace reconciler_canary is that of the reconciler of apache_james")


def test_whoever_writes_canaries_asks_whose_they_are(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    servers = ("CassandraLease", "Lanes", "lease_that_bears", "Nodes", "Watcher", "connect")
    for name in (*servers, "end_lease_of_the_dead"):
        monkeypatch.setattr(canary, name, MagicMock())
    monkeypatch.setattr(canary, "canaries", lambda settings: Taken("apache_james"))
    canary.keeper(OTHER, MagicMock())
    assert "is that of the reconciler of apache_james" in caplog.text


@pytest.mark.parametrize("failed", [Unreachable("no host"), Refused("no SELECT")])
def test_where_nobody_can_be_asked_that_is_said(
    failed: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_another(Taken(failed), OTHER)
    (said,) = caplog.messages
    assert said.startswith("not known whose the canaries are")
