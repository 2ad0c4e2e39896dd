"""Which stream settles what a command hands over, and whether one observes: it has no lease."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

import pytest

from checkpoints.bookmarks import Bookmark, Offsets
from checkpoints.clock import now_micros
from reconcilers.declared.families.message import MESSAGE
from reconcilers.words.errors import Misconfigured
from reconcilers.words.model import Kind, Slot, Wake, look_again
from streaming.again.mark import SweepMark
from streaming.commands.again.asked_sweeps import wait_until_it_counts
from streaming.commands.wiring.hand_over import mode_of, observes, waiting
from streaming.pipeline.failures import SliceFailures
from streaming.settings import Mode
from streaming.topics import Record, suspect_record
from tests.builders.rows import SECOND
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.checkpoints.progress import MemoryBookmarks, MemoryFailingSlices

MAILBOX = UUID(int=1)
TOPIC = "suspects"
STREAM = "mail/message/observe"
SETTLED = {("james", 0): 40}
SILENT = 270 * SECOND


class Observing:
    """An observing stream, as far as it keeps anything."""

    def __init__(self) -> None:
        self.now = now_micros()
        self.bookmarks = MemoryBookmarks(lambda: self.now)
        self.kept = MemoryFailingSlices()
        self.failures = SliceFailures(self.kept, STREAM)

    def begin(self) -> None:
        self.failures = SliceFailures(self.kept, STREAM)
        self.failures.begin(SETTLED)

    def settle(self) -> None:
        self.failures.done(SETTLED)
        self.bookmarks.record(Bookmark(STREAM, SETTLED))

    def runs(self) -> bool:
        return observes(STREAM, self.bookmarks, self.kept, SILENT)


def test_one_that_has_ended_as_it_should_runs_no_more_however_lately_it_settled_something() -> None:
    stream = Observing()
    assert not stream.runs()
    stream.begin()
    assert not stream.runs(), "nothing is known to be settled by it"
    stream.settle()
    assert stream.runs()
    stream.failures.end()
    assert not stream.runs()


def test_the_next_one_runs_as_soon_as_it_has_begun() -> None:
    stream = Observing()
    stream.begin()
    stream.settle()
    stream.failures.end()
    stream.begin()
    assert stream.runs()


def test_one_that_was_killed_counts_until_it_is_silent_for_too_long() -> None:
    stream = Observing()
    stream.begin()
    stream.now = now_micros() - SILENT + 60 * SECOND
    stream.settle()
    assert stream.runs()
    killed = Observing()
    killed.begin()
    killed.now = now_micros() - SILENT - SECOND
    killed.settle()
    assert not killed.runs()


# --- what waits in the topic of suspects


@dataclass
class Topic:
    """One partition, as a watcher tells of it."""

    wakes: Sequence[Wake]
    first: int = 0

    def beginning_offsets(self, topics: Sequence[str]) -> Offsets:
        return {topic: {0: self.first} for topic in topics}

    def end_offsets(self, topics: Sequence[str]) -> Offsets:
        return {topic: {0: len(self.wakes)} for topic in topics}

    def records(self, topic: str, partition: int, begin: int, end: int) -> Iterator[Record]:
        assert begin >= self.first, "Kafka has deleted it"
        for offset in range(begin, end):
            yield Record(topic, partition, offset, *suspect_record(MESSAGE, self.wakes[offset]))


def put_off(uid: int, projection: str = "messages") -> Wake:
    return look_again(Slot(MAILBOX, uid), projection, None, None, Kind.EXTRA_ROW)


def place(uid: int, projection: str = "messages") -> tuple[str, Slot]:
    return projection, Slot(MAILBOX, uid)


def test_what_is_published_and_not_settled_waits_for_a_look() -> None:
    topic = Topic([put_off(1), put_off(2), put_off(3, "deleted_uids")])
    asked = [place(1), place(2), place(2, "deleted_uids"), place(3, "deleted_uids"), place(4)]

    def found(settled: int | None) -> set[tuple[str, Slot]]:
        newest = None if settled is None else Bookmark(STREAM, {(TOPIC, 0): settled})
        return waiting(topic, TOPIC, lambda: newest, asked)  # type: ignore[arg-type]

    assert found(None) == found(0) == {place(1), place(2), place(3, "deleted_uids")}
    assert found(1) == {place(2), place(3, "deleted_uids")}
    assert found(3) == set()
    topic.first = 2
    assert found(None) == {place(3, "deleted_uids")}


def test_a_key_of_no_projection_is_one_of_all() -> None:
    topic = Topic([Wake((MAILBOX, 1), None)])
    asked = [place(1), place(1, "deleted_uids"), place(2)]
    assert waiting(topic, TOPIC, lambda: None, asked) == set(asked[:2])  # type: ignore[arg-type]


# --- when a sweep begins


@pytest.mark.parametrize(
    ("noted", "waits"),
    [(None, False), (-60, False), (-5, True), (0, True), (4, True), (3_600, False)],
)
def test_a_sweep_begins_when_it_can_make_memory_whole(noted: int | None, waits: bool) -> None:
    """Not where that would take long: then a clock is wrong, and is told of at the end."""
    lineage, now, waited = MemoryLineage(), now_micros(), list[float]()
    if noted is not None:
        lineage = MemoryLineage(lambda: now + noted * SECOND)
        lineage.watch_from(now - 3_600 * SECOND)
    wait_until_it_counts(SweepMark(lineage, 20 * SECOND), waited.append)
    assert bool(waited) is waits
    assert all(0 < each <= 20 for each in waited)


# --- which stream gets what is found


@pytest.mark.parametrize("mode", Mode)
def test_without_a_mode_the_stream_that_runs_gets_it(mode: Mode) -> None:
    assert mode_of(None, lambda each: each is mode) is mode


@pytest.mark.parametrize("mode", Mode)
def test_the_mode_that_is_asked_for_gets_it_whatever_runs(mode: Mode) -> None:
    assert mode_of(mode.value, lambda each: each is not mode) is mode


@pytest.mark.parametrize(
    ("runs", "why"), [(False, "no stream runs"), (True, "a stream of each mode runs")]
)
def test_where_none_or_both_run_a_person_is_asked(*, runs: bool, why: str) -> None:
    asks = "say which one gets what is found, --mode observe or --mode repair"
    with pytest.raises(Misconfigured, match=f"^{why}: {asks}$"):
        mode_of(None, lambda _: runs)
