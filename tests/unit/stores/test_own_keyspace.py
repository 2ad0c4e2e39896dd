"""Our own keyspace through the driver: one node for each change, agreement, and clear refusals."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cassandra import Unauthorized
from cassandra.cluster import Session

from checkpoints.cassandra import Store
from checkpoints.schema import STEPS
from checkpoints.schema.upgrade import upgrade
from reconcilers.words.errors import Misconfigured, Overloaded, Refused
from reconcilers.words.exit_codes import ExitCode
from streaming import app
from streaming.commands.doctor import command as doctor
from streaming.settings import CassandraSettings, Settings
from streaming.tables import own_keyspace
from tests.fakes.checkpoints.owner import MemoryOwner
from tests.fakes.schema_store import MemorySchemaStore

A_TABLE = "CREATE TABLE IF NOT EXISTS mine.a (\n    b text PRIMARY KEY\n)"


@dataclass(frozen=True)
class Node:
    endpoint: str


NODES = (Node("10.0.0.2:9042"), Node("10.0.0.1:9042"))


@dataclass
class OneSession:
    """A driver session with two nodes; ``answer`` is what becomes of a statement."""

    answer: Callable[[], None] = lambda: None
    agreed: bool = True
    sent: list[tuple[str, object]] = field(default_factory=list)

    def execution_profile_clone_update(self, *_: object, **__: object) -> None:
        return None

    def get_pool_state(self) -> dict[Any, Any]:
        return {node: {} for node in NODES}

    def execute_async(self, statement: str, host: Any = None, **_: object) -> Any:
        self.sent.append((statement, host.endpoint))
        return SimpleNamespace(result=self.answer, is_schema_agreed=self.agreed)


def store(session: OneSession) -> Store:
    return Store(cast(Session, session), "mine")


def test_every_process_sends_a_change_to_the_first_node() -> None:
    session = OneSession()
    store(session).change(A_TABLE)
    assert session.sent == [(A_TABLE, "10.0.0.1:9042")]


def test_a_change_that_the_nodes_do_not_agree_on_is_to_be_done_again() -> None:
    with pytest.raises(Overloaded, match="do not agree on the schema yet, after: CREATE TABLE IF"):
        store(OneSession(agreed=False)).change(A_TABLE)


def test_a_change_that_is_refused_says_which_in_one_line() -> None:
    def refuse() -> None:
        raise Unauthorized("no CREATE")

    with pytest.raises(Refused) as refused:
        store(OneSession(answer=refuse)).change(A_TABLE)
    assert "CREATE TABLE IF NOT EXISTS mine.a ( b text PRIMARY KEY ): " in str(refused.value)
    assert "\n" not in str(refused.value)


@dataclass(frozen=True)
class Host:
    datacenter: str


def test_nodes_are_counted_in_their_data_centre() -> None:
    hosts = [Host("paris"), Host("paris"), Host("rome")]
    metadata = SimpleNamespace(all_hosts=lambda: hosts)
    session = OneSession()
    session.cluster = SimpleNamespace(metadata=metadata)  # type: ignore[attr-defined]
    assert [store(session).nodes(each) for each in (None, "paris", "rome")] == [3, 2, 1]


# --- the commands' side ---------------------------------------------------------------------------


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> MemorySchemaStore:
    """Our own keyspace, as the commands find it: nothing there yet."""
    kept = MemorySchemaStore("reconciler")
    monkeypatch.setattr(own_keyspace, "_store", lambda settings: kept)
    owner = MemoryOwner()
    monkeypatch.setattr(own_keyspace, "CassandraOwner", lambda store: owner)
    return kept


@pytest.mark.parametrize(
    ("nodes", "set_to", "copies"),
    [(0, None, "1"), (1, None, "1"), (2, None, "2"), (3, None, "3"), (12, None, "3"), (12, 1, "1")],
)
def test_it_has_three_copies_where_there_are_so_many_nodes(
    kept: MemorySchemaStore, nodes: int, set_to: int | None, copies: str
) -> None:
    kept.cluster_of = nodes
    own_keyspace.make_own(CassandraSettings(own_replication=set_to))
    assert kept.log[0].endswith(f"{{'class': 'SimpleStrategy', 'replication_factor': '{copies}'}}")


def test_without_the_right_to_create_one_line_says_what_to_do(kept: MemorySchemaStore) -> None:
    kept.may_create = False
    with pytest.raises(Misconfigured) as refused:
        own_keyspace.make_own(CassandraSettings())
    said = str(refused.value)
    steps = ", ".join(f"step {each.number} ({each.name})" for each in STEPS[:3])
    assert said.startswith(f"keyspace reconciler lacks {steps} and {len(STEPS) - 3} more: ")
    assert "have an admin run" in said
    assert "`reconcile doctor --fix`" in said
    assert "\n" not in said


def test_commands_that_only_read_do_not_begin_on_an_unfinished_keyspace(
    kept: MemorySchemaStore,
) -> None:
    with pytest.raises(Misconfigured, match="start `reconcile stream` once, or have an admin run"):
        own_keyspace.open_own(Settings())
    assert kept.log == []


def test_the_stream_finishes_what_is_not_finished(kept: MemorySchemaStore) -> None:
    own_keyspace.make_own(CassandraSettings())
    assert own_keyspace.gap_in(kept, CassandraSettings()).todo == ()


@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize("command", ["stream", "status", "findings", "pause", "resume", "doctor"])
def test_every_command_refuses_a_newer_keyspace_with_one_line(
    command: str,
    kept: MemorySchemaStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    upgrade(kept)
    kept.records[1000] = "what is not known yet"

    cluster = SimpleNamespace(schema=lambda _: {}, store=lambda _: kept)
    monkeypatch.setattr(doctor, "logged_in", lambda _: nullcontext(cluster))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert app.main([command]) == ExitCode.REFUSED
    (line,) = capsys.readouterr().err.splitlines()
    assert "keyspace reconciler is at version 1000" in line
    assert "there is no way back" in line
