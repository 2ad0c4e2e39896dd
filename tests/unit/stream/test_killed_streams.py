"""A slice that kills the process: its next ones find what it left, and take the slice in parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from checkpoints.bookmarks import Place
from checkpoints.failing_slices import FailingSlice
from reconcilers.words.errors import Refused, Unreachable
from reconcilers.words.model import Micros
from streaming.pipeline import slice_work as module
from streaming.pipeline.failures import ALONE_FOR, TRIES, TRIES_ALONE, SliceFailures
from streaming.pipeline.ranges import Ranges
from streaming.pipeline.slice_work import GIVEN_UP
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook, Job
from tests.builders.failing import unreachable
from tests.fakes.checkpoints.progress import MemoryFailingSlices
from tests.unit.stream.test_query_batch import (
    NOWHERE,
    ONE,
    ZERO,
    Decisions,
    Query,
    Work,
    closed,
    work_with,
)

STREAM = "message"
RECORDS = 1_000
MOST_STARTS = 60


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


@dataclass
class Store(MemoryFailingSlices):
    """What outlives the processes; it takes down what is kept, and may not answer."""

    kept: list[FailingSlice] = field(default_factory=list)
    reads: int = 0
    error: Exception | None = None

    def __post_init__(self) -> None:
        super().__init__()

    def of(self, stream: str) -> FailingSlice | None:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return super().of(stream)

    def keep(self, stream: str, failing: FailingSlice) -> None:
        if self.error is not None:
            raise self.error
        self.kept.append(failing)
        super().keep(stream, failing)

    def forget(self, stream: str) -> None:
        if self.error is not None:
            raise self.error
        super().forget(stream)


@dataclass
class Settling(Decisions):
    """Keeps what is settled, as the bookmarks do."""

    settled: dict[Place, int] = field(default_factory=dict)

    def ended(self, look: BatchLook, piece: Slice) -> None:
        super().ended(look, piece)
        self.settled.update(piece.end)


@dataclass
class World:
    """Kafka, our keyspace, and processes that are started again and again."""

    monkeypatch: pytest.MonkeyPatch
    store: Store = field(default_factory=Store)
    settled: dict[Place, int] = field(default_factory=lambda: {ZERO: 0, ONE: 0})
    deadly: frozenset[int] = frozenset()
    failing: frozenset[int] = frozenset()
    looked: list[int] = field(default_factory=list)
    letters: list[Mapping[str, Any]] = field(default_factory=list)
    now: Micros = 0
    ends: int = RECORDS

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(module, "now_micros", lambda: self.now)
        self.monkeypatch.setattr("time.sleep", lambda _seconds: None)

    def process(self) -> Query:
        """A new one, with nothing of the others' but what they left."""
        self.monkeypatch.setattr(
            Job, "keep_dead_letters", lambda _, letters: self.letters.extend(letters)
        )
        ranges, decisions = (
            Ranges(SliceFailures(self.store, STREAM)),
            Settling(settled=self.settled),
        )
        work = work_with(decisions, ranges, most=10 * RECORDS, kind=Looking)
        assert isinstance(work, Looking)
        work.world = self
        made = Query(work, NOWHERE, lambda topic: [0, 1])
        made.begin(dict(self.settled))
        return made

    def start(self) -> Query:
        """It reads all that is not settled, and looks at it; may be killed by it."""
        process = self.process()
        self.batch(process)
        return process

    def batch(self, process: Query) -> None:
        """Whatever was there before is let out again."""
        self.now += ALONE_FOR
        process.batch(closed(self.now, ZERO, self.ends - 1))

    def run(self) -> int:
        """Start a process whenever one was killed; how many were."""
        for killed in range(MOST_STARTS):
            try:
                self.start()
            except Killed:
                continue
            return killed
        raise AssertionError("each process is killed")


@dataclass(slots=True)
class Looking(Work):
    """Looks at the records of a slice, one after the other."""

    world: World = field(init=False)

    def _look(self, piece: Slice) -> BatchLook:
        records = range(*piece.ranges.get(ZERO, (0, 0)))
        if self.world.deadly & set(records):
            raise Killed
        if self.world.failing & set(records):
            raise Unreachable("no answer came in time")
        self.world.looked += records
        return BatchLook(examined=len(records))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_record_that_kills_each_process_is_given_up_and_all_others_are_looked_at(
    world: World,
) -> None:
    world.deadly = frozenset({500})
    killed = world.run()
    place = {"topic": ZERO[0], "partition": 0, "offset": 500}
    assert world.letters == [{**place, "reason": GIVEN_UP, "raw": None}]
    assert sorted(world.looked) == [each for each in range(RECORDS) if each != 500]
    assert world.settled[ZERO] == RECORDS
    assert killed == 1 + TRIES + 2 + TRIES_ALONE, "the first, as a whole, in parts, alone"
    assert world.store.of(STREAM) == FailingSlice(), "as of any that runs"


def test_two_such_records_are_given_up_and_nothing_else(world: World) -> None:
    world.deadly = frozenset({3, 940})
    world.run()
    assert [each["offset"] for each in world.letters] == [3, 940]
    assert len(world.looked) == RECORDS - 2


def test_attempts_that_failed_count_with_those_that_killed(world: World) -> None:
    """Whatever befalls it, the third attempt at the whole is the last."""
    world.failing = frozenset({500})
    with pytest.raises(Unreachable):
        world.start()
    world.failing, world.deadly = frozenset(), frozenset({500})
    for _ in range(TRIES - 1):
        with pytest.raises(Killed):
            world.start()
    assert world.looked == []
    with pytest.raises(Killed):
        world.start()
    assert len(world.looked) >= RECORDS // 4


def test_a_restart_does_not_begin_to_count_anew(world: World) -> None:
    """A process that is ended after each failure, as by a rollout: as it should be, or not."""
    world.failing = frozenset({500})
    for number in range(TRIES):
        process = world.process()
        with pytest.raises(Unreachable):
            world.batch(process)
        if number % 2:
            process.work.ranges.failures.end()
    with pytest.raises(Unreachable):
        world.start()
    assert len(world.looked) >= RECORDS // 4


def test_a_record_that_only_failed_before_the_restart_is_tried_before_it_is_given_up(
    world: World,
) -> None:
    """As in an outage: by now it can be looked at."""
    world.ends, world.failing = 1, frozenset({0})
    for _ in range(TRIES_ALONE + 1):
        with pytest.raises(Unreachable):
            world.start()
    world.failing = frozenset()
    world.start()
    assert (world.looked, world.letters) == ([0], [])


def test_while_cassandra_does_not_answer_what_killed_is_not_given_up(world: World) -> None:
    world.ends, world.deadly = 1, frozenset({0})
    for _ in range(1 + TRIES_ALONE):
        with pytest.raises(Killed):
            world.start()
    process = world.process()
    process.work.decisions.silent = True  # type: ignore[attr-defined]
    with pytest.raises(Unreachable):
        world.batch(process)
    assert world.letters == []
    world.start()
    assert [each["offset"] for each in world.letters] == [0]


# --- what it costs


def test_a_stream_where_nothing_fails_keeps_nothing_for_its_slices(world: World) -> None:
    process = world.start()
    for _ in range(5):
        world.ends += 10
        world.batch(process)
    assert (world.store.kept, world.store.reads) == ([FailingSlice()], 1)
    process.work.ranges.failures.end()
    assert world.store.of(STREAM) is None


def test_after_an_end_that_was_not_clean_one_slice_is_suspected(world: World) -> None:
    world.process()
    process = world.start()
    world.ends += 10
    world.batch(process)
    assert [each.times for each in world.store.kept] == [0, 0, 1, 0]


# --- a store that does not answer


@pytest.mark.parametrize("error", [Unreachable("no host answered"), Refused("no right to")])
def test_without_the_store_a_process_counts_by_itself_as_before(
    world: World, error: Exception
) -> None:
    world.store.error, world.failing = error, frozenset({500})
    process = world.process()
    for _ in range(TRIES):
        with pytest.raises(Unreachable):
            world.batch(process)
    assert world.looked == []
    with pytest.raises(Unreachable):
        world.batch(process)
    assert len(world.looked) >= RECORDS // 4
    process.work.ranges.failures.end()


def test_what_was_left_of_other_offsets_is_forgotten(world: World) -> None:
    """The topic was made anew, or a partition that failed is gone."""
    other = Slice({ZERO: 5_000_000}, {ZERO: 5_001_000}, 0, 0)
    gone = FailingSlice(other.name, 3, 3, 0, other.end, most=1, until={ZERO: 5_001_000})
    world.store.keep(STREAM, gone)
    world.start()
    assert world.settled[ZERO] == RECORDS
    assert world.store.kept[-1] == FailingSlice()
    assert len(world.store.kept) < 5, "not once a record"


def test_what_could_not_be_read_at_the_start_is_not_written_over(world: World) -> None:
    left = FailingSlice(Slice(world.settled, world.settled, 0, 0).name, 2, 2)
    world.store.keep(STREAM, left)
    with world.monkeypatch.context() as slow:
        slow.setattr(world.store, "of", unreachable)  # what is kept meanwhile would be taken
        world.process()
    assert world.store.of(STREAM) == left


def test_after_an_end_that_was_not_clean_suspects_are_examined_apart_until_the_next(
    world: World,
) -> None:
    process = world.start()
    assert not process.work.ranges.failures.suspected, "the first process ever"
    world.ends += RECORDS
    process = world.start()  # after one that did not end
    assert process.work.ranges.settled[ZERO] == world.ends
    assert process.work.ranges.failures.suspected, "whatever it has settled since"
    process.end()
    assert not world.start().work.ranges.failures.suspected
