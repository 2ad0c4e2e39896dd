"""Replays: what of the wanted offsets is read, in which slices, and around what cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from unittest.mock import Mock
from uuid import uuid4

import pytest

from checkpoints.bookmarks import OffsetRanges
from reconcilers.words.errors import Refused, SparkDied, Unreachable
from reconcilers.words.model import Kind, Slot, Suspect
from streaming.again.replay import Replay, Replayable, replayable
from streaming.again.rounds import GIVES_UP_AFTER
from streaming.again.sweep import Interrupted
from streaming.pipeline.worker import BatchLook

SUSPECT = Suspect(Slot(uuid4(), 1), frozenset(), Kind.MISSING_ROW, "messages")
ZERO, ONE = ("mail", 0), ("mail", 1)


def test_all_that_is_wanted_is_read_where_kafka_holds_it() -> None:
    found = replayable({ZERO: 5, ONE: 0}, {ZERO: 10, ONE: 7}, {ZERO: 0, ONE: 0})
    assert found == Replayable({ZERO: 5, ONE: 0}, {ZERO: 10, ONE: 7})
    assert found.records == 12


def test_what_kafka_has_deleted_is_told_and_the_rest_is_read() -> None:
    found = replayable({ZERO: 5}, {ZERO: 10}, {ZERO: 8})
    assert (found.begin, found.end) == ({ZERO: 8}, {ZERO: 10})
    assert found.gone == ("mail/0 5–7: Kafka's retention has passed",)


def test_of_what_is_wanted_nothing_may_be_left() -> None:
    found = replayable({ZERO: 5}, {ZERO: 10}, {ZERO: 40})
    assert found.records == 0
    assert found.gone == ("mail/0 5–9: Kafka's retention has passed",)


@pytest.mark.parametrize("begin", [10, 12])
def test_what_is_not_settled_is_not_replayed(begin: int) -> None:
    assert replayable({ZERO: begin}, {ZERO: 10}, {ZERO: 0}) == Replayable({}, {})
    assert replayable({ZERO: begin}, {ZERO: 10}, {ZERO: 11}).records == 0


# --- going through it


@dataclass
class Events:
    """Looks at ranges of partition 0: some offsets cannot be looked at, each holds a suspect."""

    poisoned: set[int] = field(default_factory=set)
    outages: int = 0
    read: list[int] = field(default_factory=list)
    published: list[Suspect] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    stops_after: int = 10**6
    deleted: dict[int, int] = field(default_factory=dict)
    """Up to which offset Kafka has deleted once that many were read; the newest counts."""

    @property
    def beginning(self) -> int:
        return max((to for read, to in self.deleted.items() if len(self.read) >= read), default=0)

    def look(self, ranges: OffsetRanges) -> BatchLook:
        ((begin, end),) = ranges.values()
        if self.outages:
            self.outages -= 1
            raise Unreachable("no host answers")
        if begin < self.beginning:
            raise SparkDied("Some data may have been lost")
        if self.poisoned & set(range(begin, end)):
            raise Refused("out of memory")
        self.read += range(begin, end)
        return BatchLook(suspects=[SUSPECT], examined=end - begin)

    def publish(self, suspects: Sequence[Suspect]) -> None:
        self.published += suspects

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        if len(self.waited) > self.stops_after:
            raise Interrupted

    def table(self, name: str, done: int, ranges: int) -> None:
        self.told.append(f"{name} {done}/{ranges}")

    def round(self, ranges: int, rows: int, suspects: int) -> None:
        self.told.append(f"{ranges} {rows} {suspects}")

    def waiting(self, why: str) -> None:
        self.told.append(why)

    def replay(self, at_once: int) -> Replay:
        return Replay(
            self.look, self.publish, self, self.wait, at_once, lambda: {ZERO: self.beginning}
        )


WANTED = Replayable({ZERO: 100}, {ZERO: 130})


def test_every_event_is_read_once_and_suspects_are_handed_over_slice_by_slice() -> None:
    events = Events()
    found = events.replay(10).run(WANTED)
    assert events.read == list(range(100, 130))
    assert events.published == [SUSPECT] * 3
    assert found.suspects == {("messages", "missing_row"): 3}  # not kept: there may be millions
    assert (found.records, found.keys, found.unread) == (30, 30, [])
    assert events.told == ["events 0/3", "1 10 1", "1 10 1", "1 10 1"]


@pytest.mark.parametrize("poisoned", [{100}, {117}, {129}, {104, 105}])
def test_an_event_that_no_worker_can_look_at_keeps_no_other_from_it(poisoned: set[int]) -> None:
    events = Events(poisoned)
    found = events.replay(10).run(WANTED)
    assert sorted(events.read) == sorted(set(range(100, 130)) - poisoned)
    assert found.unread == [f"mail/0 {each}: out of memory" for each in sorted(poisoned)]


@pytest.mark.parametrize(
    ("to", "gone"),
    [(113, ["110–112"]), (124, ["110–119", "120–123"]), (130, ["110–119", "120–129"])],
)
def test_what_kafka_deletes_while_it_goes_on_is_told_and_the_rest_is_read(
    to: int, gone: list[str]
) -> None:
    events = Events(deleted={10: to})
    found = events.replay(10).run(WANTED)
    assert sorted({*events.read, *range(110, to)}) == list(range(100, 130))
    assert found.gone == [f"mail/0 {each}: Kafka's retention has passed" for each in gone]
    assert (found.unread, found.records) == ([], 30 - (to - 110))


def test_where_kafka_holds_all_the_end_of_spark_ends_the_replay() -> None:
    died = Mock(side_effect=SparkDied("Spark's JVM is gone"))
    with pytest.raises(SparkDied):
        replace(Events().replay(10), look=died).run(WANTED)


def test_an_outage_is_waited_for_and_blames_no_event() -> None:
    events = Events(outages=3)
    assert events.replay(10).run(WANTED).unread == []
    assert events.read == list(range(100, 130))
    assert [each for each in events.waited if each] == [2.0, 4.0, 8.0]
    assert events.told.count("no host answers") == 3


def test_an_outage_that_does_not_end_ends_the_replay() -> None:
    with pytest.raises(Unreachable):
        Events(outages=GIVES_UP_AFTER).replay(10).run(WANTED)


def test_somebody_may_end_it_between_two_slices() -> None:
    events = Events(stops_after=2)
    with pytest.raises(Interrupted):
        events.replay(10).run(WANTED)
    assert events.read == list(range(100, 120))
    assert len(events.published) == 2
