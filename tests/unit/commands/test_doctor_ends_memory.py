"""`reconcile doctor --off` and `--fix` end memory themselves: no stream may have seen the span."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from checkpoints.schema.upgrade import upgrade
from reconcilers.words.errors import Refused, Unreachable
from streaming import app
from streaming.commands.doctor import command as doctor
from streaming.commands.doctor.checks.check import Check, Level
from streaming.tables import own_keyspace
from tests.builders.failing import unreachable
from tests.fakes.checkpoints.losses import MemoryLosses
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.schema_store import MemorySchemaStore

OFF = "ALTER TABLE apache_james.imapuidtable WITH cdc = false"
ON = "ALTER TABLE apache_james.imapuidtable WITH cdc = true AND gc_grace_seconds = 864001"
ENDED = "memory ended"


@dataclass
class Scene:
    """A cluster, and in which order what was done to it."""

    kept: MemorySchemaStore
    captured: frozenset[str] = frozenset({"imapuidtable"})
    there: frozenset[str] = frozenset({"imapuidtable"})
    asked: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    refused: bool = False
    memory: MemoryLineage = field(default_factory=MemoryLineage)
    losses: MemoryLosses = field(default_factory=MemoryLosses)

    def __post_init__(self) -> None:
        self.memory.watch_from(1, "imapuidtable=1@5 messageidtable=2@5")

    def store(self, settings: object) -> MemorySchemaStore:
        return self.kept

    def schema(self, keyspace: str) -> dict[str, dict[str, str]]:
        return {table: {} for table in self.there}

    def tables_with_cdc(self, keyspace: str) -> frozenset[str]:
        return self.captured if keyspace == "apache_james" else frozenset()

    def node_settings(self, names: object) -> dict[str, dict[str, str]]:
        return {}

    def run(self, statement: str) -> None:
        """Whether memory had ended by then is taken down, too."""
        self.done.append(statement if self.memory.watching() else f"{ENDED}: {statement}")

    def lineage(self, store: object) -> MemoryLineage:
        assert store is self.kept
        if self.refused:
            raise Refused("unconfigured table watches")
        return self.memory

    def examined(self, settings: object) -> list[Check]:
        """As the checks ask for it."""
        return [Check(Level.PROBLEM, "something", "do it", cql=tuple(self.asked))]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    kept = MemorySchemaStore("reconciler")
    upgrade(kept)
    scene = Scene(kept)
    monkeypatch.setattr(doctor, "logged_in", lambda _: nullcontext(scene))
    monkeypatch.setattr(doctor, "refuse_another", lambda store, settings: None)
    monkeypatch.setattr(own_keyspace, "CassandraLineage", scene.lineage)
    monkeypatch.setattr(own_keyspace, "CassandraLosses", lambda store: scene.losses)
    monkeypatch.setattr(doctor, "examine", scene.examined)
    return scene


@pytest.fixture
def admin(tmp_path: Path) -> list[str]:
    (file := tmp_path / "password").write_text("secret\n")
    return ["--admin-username", "a", "--admin-password-file", str(file)]


@pytest.mark.parametrize("began", ["this version", "an older one, that kept no tables"])
def test_turning_capture_off_ends_memory_first(scene: Scene, admin: list[str], began: str) -> None:
    if began != "this version":
        scene.memory.watch_from(1)
    app.main(["doctor", "--off", "--wait", "0", *admin])
    assert scene.done == [f"{ENDED}: {OFF}"]
    (loss,) = scene.losses.since(0)
    assert loss.why == "change capture is turned off or on"


def test_turning_capture_on_again_ends_memory_first(scene: Scene, admin: list[str]) -> None:
    scene.captured, scene.asked = frozenset(), [ON]
    app.main(["doctor", "--fix", *admin])
    assert scene.done == [f"{ENDED}: {ON}"]


@pytest.mark.parametrize(
    ("new", "asked"),
    [
        (set(), "GRANT SELECT ON apache_james.imapuidtable TO reconciler"),
        ({"messagedeleted"}, "ALTER TABLE apache_james.messagedeleted WITH cdc = true"),
    ],
    ids=["a grant", "a table that is newly watched"],
)
def test_what_misses_no_change_ends_nothing(
    scene: Scene, admin: list[str], new: set[str], asked: str
) -> None:
    scene.there |= new
    scene.asked = [asked]
    app.main(["doctor", "--fix", *admin])
    assert scene.done == scene.asked


@pytest.mark.parametrize("option", ["--off", "--fix"])
def test_what_is_only_printed_ends_nothing(option: str, scene: Scene) -> None:
    scene.captured, scene.asked = frozenset(), [ON]
    app.main(["doctor", option])
    assert scene.done == []
    assert scene.memory.watching() is not None


def test_where_it_cannot_be_ended_that_is_said(
    scene: Scene, admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    scene.refused = True
    app.main(["doctor", "--off", "--wait", "0", *admin])
    assert scene.done == [OFF]
    assert "--events-lost" in capsys.readouterr().out


def test_an_end_that_could_not_be_told_is_made_and_told_the_next_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once memory has ended nothing rests on it, and a second time nothing would be told."""
    store: Any = scene.kept
    with monkeypatch.context() as patched:
        patched.setattr(scene.losses, "record", unreachable)
        with pytest.raises(Unreachable):
            own_keyspace.end_memory_of(store, {"imapuidtable"}, "capture is turned off")
    assert own_keyspace.end_memory_of(store, {"imapuidtable"}, "capture is turned off")
    assert scene.memory.watching() is None
    assert [each.why for each in scene.losses.since(0)] == ["capture is turned off"]
