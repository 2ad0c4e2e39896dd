"""`reconcile resume --own-keyspace`, what `status` says, and what stands in Kafka."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from checkpoints.pauses import Resumed
from reconcilers.limits.generation import GENERATIONS, Generations, doubt, note_of
from reconcilers.limits.pause import PILOT, Pause
from reconcilers.limits.pilot import Pilot
from reconcilers.words.errors import Overloaded, Unreachable
from reconcilers.words.model import Micros
from streaming import app
from streaming.commands.person import resume
from streaming.commands.person import undo as undoing
from streaming.commands.person.orders import Orders
from streaming.commands.wiring import generations as command
from streaming.settings import Settings
from tests.builders.failing import unreachable
from tests.builders.rows import NOW, SECOND
from tests.fakes.checkpoints.generations import MemoryGenerations
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.checkpoints.pauses import MemoryPauses

BY = Resumed(NOW + 60 * SECOND, "bob", "pauses are set again")
ONLY_PILOT = Settings.model_validate({"repair": {"only_pilot": True}})


@dataclass
class Installation:
    """Our keyspace and Kafka, as the commands find them."""

    store: MemoryGenerations = field(default_factory=lambda: MemoryGenerations(NOW))
    notes: dict[str, set[str]] = field(
        default_factory=lambda: {"reconciler.apache_james": {note_of(NOW), ""}}
    )
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    ended: list[str] = field(default_factory=list)
    closed: int = 0

    def watcher(self, _kafka: Any = None) -> Any:
        def close() -> None:
            self.closed += 1

        return SimpleNamespace(notes=lambda group: self.notes.get(group, set()), close=close)

    def accept(self) -> list[str]:
        return list(command.accept(Settings(), SimpleNamespace(store=None), BY))  # type: ignore[arg-type]

    def doubt(self, newest: Micros | None = NOW) -> str | None:
        return doubt(self.store.read(), newest)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Installation:
    made = Installation()
    made.lineage.watch_from(NOW - 60 * SECOND)
    monkeypatch.setattr(command, "CassandraGenerations", lambda *_: made.store)
    monkeypatch.setattr(command, "CassandraLineage", lambda _: made.lineage)
    monkeypatch.setattr(command, "Watcher", made.watcher)
    monkeypatch.setattr(command, "end_memory", lambda _, why: made.ended.append(why))
    return made


# --- what stands outside


def test_the_newest_of_both_modes_counts(place: Installation) -> None:
    place.notes["reconciler.apache_james-observe"] = {note_of(NOW + SECOND), "of another tool"}
    assert command.outside(Settings(), place.watcher()) == NOW + SECOND


def test_where_kafka_holds_none_nothing_is_known(place: Installation) -> None:
    place.notes.clear()
    assert command.outside(Settings(), place.watcher()) is None
    assert command.doubt_of(Settings(), None, place.watcher()) is None  # type: ignore[arg-type]


# --- the way out


@pytest.mark.parametrize("lost", [("pauses",), GENERATIONS])
def test_a_person_takes_it_as_right_and_memory_from_before_ends(
    place: Installation, lost: tuple[str, ...]
) -> None:
    place.store.held.update(dict.fromkeys(lost))
    assert place.doubt() is not None
    told = place.accept()
    assert place.doubt() is None
    assert told[0].startswith("our keyspace was not as it was left: table")
    assert told[1:] == [
        "lineage is reset; a sweep makes it complete",
        "it is accepted from now on; a stream that waited for that continues",
    ]
    (why,) = place.ended
    assert why.endswith("accepted by bob: pauses are set again")
    assert place.closed == 1


def test_what_is_written_is_above_all_that_is_known(place: Installation) -> None:
    ahead = NOW + 3_600 * SECOND
    place.notes["reconciler.apache_james"] = {note_of(ahead)}
    place.accept()
    assert set(place.store.held.values()) == {ahead + 1}
    assert place.doubt(ahead) is None


def test_memory_that_a_stream_has_begun_since_goes_on(place: Installation) -> None:
    place.store.held["holds"] = None
    place.lineage.watch_from(NOW + SECOND)
    place.accept()
    assert place.ended == []


def test_a_keyspace_that_is_as_it_was_left_loses_no_memory(place: Installation) -> None:
    assert place.accept()[0] == "our keyspace is as it was left"
    assert place.ended == []
    assert set(place.store.held.values()) == {BY.at}


def test_where_it_changes_meanwhile_nothing_is_accepted(place: Installation) -> None:
    class Changing(MemoryGenerations):
        def read(self) -> Generations:
            found = super().read()
            self.held["pauses"] = None
            return found

    place.store = Changing(NOW)
    with pytest.raises(Overloaded, match="nothing is accepted, ask again"):
        place.accept()


def test_it_ends_no_pause_and_closes_no_breaker(
    place: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = MemoryPauses()
    standing = Pause("all", NOW, "alice", "a look")
    kept.begin(standing)
    monkeypatch.setattr(resume, "pauses_of", lambda settings: kept)
    monkeypatch.setattr(resume, "open_own", lambda settings: SimpleNamespace(store=None))
    assert app.main(["resume", "--own-keyspace", "--who", "bob"]) == 0
    assert kept.standing() == (standing,)
    assert "it is accepted" in capsys.readouterr().out
    assert app.main(["resume", "--pause", "removals", "--own-keyspace"]) == 2


# --- what status says


def test_status_says_what_the_product_itself_holds(place: Installation) -> None:
    place.store.held["pauses"] = None
    why = command.doubt_of(Settings(), None, place.watcher())  # type: ignore[arg-type]
    (told,) = command.held_by_itself(Settings(), why, ())
    assert "our keyspace is not as it was left: table pauses has no generation" in told
    assert told.endswith("; `reconcile resume --own-keyspace`")
    assert list(command.held_by_itself(Settings(), None, ())) == []


def test_status_says_that_no_pilot_stands() -> None:
    pilot = Pause(PILOT, NOW, "carol", "a try", pilot=Pilot(users=frozenset({"bob"})))
    (told,) = command.held_by_itself(ONLY_PILOT, None, ())
    assert told.endswith("no pilot runs; `reconcile pilot --user NAME`")
    assert list(command.held_by_itself(ONLY_PILOT, None, [pilot])) == []


# --- undo


def test_an_undo_ends_where_our_keyspace_cannot_be_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "Watcher", unreachable)
    monkeypatch.setattr(undoing, "connect", lambda _: None)
    monkeypatch.setattr(undoing, "schema_of", lambda *_: {})
    own = SimpleNamespace(store=None, journal=None)
    with pytest.raises(Unreachable):
        undoing.undo_desk(Settings(), own, Orders("ana"))  # type: ignore[arg-type]
