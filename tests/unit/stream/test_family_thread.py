"""A family that runs in a thread: what it works off, how it ends, and what a stop ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from checkpoints.bookmarks import Offsets
from reconcilers.words.errors import Unreachable
from streaming.pipeline import family_thread as module
from streaming.pipeline.failures import SliceFailures
from streaming.pipeline.family_thread import FamilyThread
from streaming.pipeline.ranges import Ranges
from streaming.pipeline.slices import Slice
from streaming.pipeline.spark_errors import is_of_servers
from streaming.pipeline.waiting_ends import WaitingEnds
from streaming.pipeline.worker import BatchLook
from tests.fakes.checkpoints.progress import MemoryFailingSlices
from tests.unit.stream.test_query_batch import (
    LOOK,
    MOST,
    ONE,
    SETTLED,
    TOPIC,
    ZERO,
    Decisions,
    Work,
    work_with,
)

PATIENCE = 60.0
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"  # a thread dies, as it is told to
)


@dataclass(slots=True)
class Looking(Work):
    """Looks as it is told to; ``begun`` is set at each look."""

    look: Callable[[], BatchLook] = lambda: LOOK
    begun: Event = field(default_factory=Event)

    def _look(self, piece: Slice) -> BatchLook:
        self.told.append(("look", piece.ranges))
        self.begun.set()
        return self.look()


@dataclass
class Context:
    """Spark's: it cancels the jobs of a group."""

    groups: list[str] = field(default_factory=list)
    cancelled: Event = field(default_factory=Event)

    def setJobGroup(self, group: str, _told: str, *, interruptOnCancel: bool) -> None:  # noqa: N802, N803
        assert interruptOnCancel
        self.groups.append(group)

    def setLocalProperty(self, name: str, pool: str) -> None:  # noqa: N802
        assert (name, pool) == ("spark.scheduler.pool", "stream")

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802
        assert group in self.groups
        self.cancelled.set()


@dataclass
class World:
    """A thread, and topics whose ends have always waited."""

    ends: Offsets = field(default_factory=lambda: {TOPIC: {0: 10, 1: 0}})
    silent: bool = False
    context: Context = field(default_factory=Context)

    def __post_init__(self) -> None:
        ranges = Ranges(SliceFailures(MemoryFailingSlices(), "s"))
        made = work_with(Decisions(), ranges, kind=Looking)
        assert isinstance(made, Looking)
        made.spark = SimpleNamespace(sparkContext=self.context)  # type: ignore[assignment]
        self.work = made
        self.family = FamilyThread(made, WaitingEnds(self.read, delay=0.0, every=0.0))

    def read(self) -> Offsets:
        if self.silent:
            raise Unreachable("no broker answered")
        return self.ends

    def looks(self) -> list[Any]:
        return [each[1] for each in self.work.told if each[0] == "look"]

    def until(self, what: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < end, self.work.told
            time.sleep(0.005)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(module, "TICK", 0.01)
    world = World()
    yield world
    world.family.stop()


def test_what_has_waited_is_worked_off_once(world: World) -> None:
    world.family.begin(SETTLED)
    world.ends = {TOPIC: {0: 15, 1: 3}}
    world.until(lambda: world.work.ranges.settled == {ZERO: 15, ONE: 3})
    world.ends = {TOPIC: {0: 15, 1: 4}}
    world.until(lambda: world.work.ranges.settled == {ZERO: 15, ONE: 4})
    world.family.stop()
    assert world.looks() == [{ZERO: (10, 15), ONE: (0, 3)}, {ONE: (3, 4)}]
    reports = list(world.family.progress())
    assert reports[-1].read == {TOPIC: {0: 15, 1: 4}}


def test_keys_that_are_due_are_published_before_anything_is_looked_at(world: World) -> None:
    world.silent = True
    world.family.begin(SETTLED)
    world.until(lambda: ("later",) in world.work.told)
    assert "look" not in {each[0] for each in world.work.told}


def test_a_backlog_reports_and_publishes_after_each_slice(world: World) -> None:
    """It may take hours: whoever waits for the whole takes it for dead."""
    world.family.ends = WaitingEnds(world.read, 0.0, 1_000.0)
    world.ends = {TOPIC: {0: 10 + 3 * MOST, 1: 0}}
    world.family.begin(SETTLED)
    world.until(lambda: world.work.ranges.settled[ZERO] == 10 + 3 * MOST)
    world.family.stop()
    passes = [each[0] for each in world.work.told if each[0] in {"look", "later"}]
    assert passes == ["later", "look", "later", "look", "later", "look", "later"]
    read = [each.read[TOPIC][0] for each in world.family.progress()]
    assert len(read) == 4


def test_a_thread_that_dies_at_once_has_not_ended_a_batch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deaths are counted until a batch ends."""

    def defect(_ends: WaitingEnds, since: float) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(WaitingEnds, "waited", defect)
    world.family.begin(SETTLED)
    world.until(lambda: not world.family.alive)
    assert list(world.family.progress()) == []
    assert "a defect" in world.family.failure()


def test_a_stop_leaves_the_slices_that_are_not_begun(world: World) -> None:
    def stopping() -> BatchLook:
        world.work.stopping.set()
        return LOOK

    world.work.look = stopping
    world.ends = {TOPIC: {0: 10 + 3 * MOST, 1: 0}}
    world.family.begin(SETTLED)
    world.until(lambda: not world.family.alive)
    assert world.work.ranges.settled[ZERO] == 10 + MOST


def test_a_slice_that_fails_ends_it_and_a_fresh_thread_does_it_again(world: World) -> None:
    def fails() -> BatchLook:
        raise Unreachable("no host answered")

    world.work.look = fails
    world.family.begin(SETTLED)
    world.ends = {TOPIC: {0: 12, 1: 0}}
    world.until(lambda: not world.family.alive)
    assert "no host answered" in world.family.failure()
    assert is_of_servers(world.family.failure()), "deaths of an outage are told by this"
    world.work.look, world.silent = lambda: LOOK, True
    world.family.start()
    world.until(lambda: world.work.ranges.settled[ZERO] == 12)
    assert world.family.failure() == "stopped"
    assert world.looks() == [{ZERO: (10, 12)}] * 2, "without waiting again"


def test_while_kafka_is_silent_it_lives_and_goes_on_afterwards(world: World) -> None:
    world.silent = True
    world.family.begin(SETTLED)
    world.until(lambda: world.work.told)
    world.ends, world.silent = {TOPIC: {0: 11, 1: 0}}, False
    world.until(lambda: world.work.ranges.settled[ZERO] == 11)
    assert world.family.alive


def test_a_stop_cancels_its_jobs_and_waits_for_them(world: World) -> None:
    def cancelled() -> BatchLook:
        assert world.context.cancelled.wait(PATIENCE)
        raise RuntimeError("Job 7 cancelled part of cancelled job group")

    world.work.look = cancelled
    world.family.begin(SETTLED)
    world.ends = {TOPIC: {0: 12, 1: 0}}
    assert world.work.begun.wait(PATIENCE)
    world.family.stop()
    assert not world.family.alive
    assert world.work.ranges.settled[ZERO] == 10
    assert world.work.ranges.failures._known.times == 0, "the slice may be good"


def test_a_clean_end_leaves_nothing_that_is_suspected(world: World) -> None:
    store = world.work.ranges.failures.store
    world.family.begin(SETTLED)
    assert store.of("s") is not None
    world.family.end()
    assert store.of("s") is None
    assert not world.family.alive


def test_ends_of_topics_from_before_it_began_again_are_not_used(world: World) -> None:
    """The topic was made again: the old ends are beyond its records."""
    world.ends = {TOPIC: {0: 5_000, 1: 0}}
    clock = [100.0]
    world.family.ends = WaitingEnds(world.read, 10.0, 1.0, lambda: clock[0])
    world.family.begin(SETTLED)
    world.until(lambda: list(world.family.ends._known))
    world.family.stop()
    clock[0] = 105.0
    world.ends = {TOPIC: {0: 3, 1: 0}}
    world.family.begin({ZERO: 0, ONE: 0})
    clock[0] = 112.0
    world.until(lambda: len(world.family.ends._known) > 1)
    clock[0] = 130.0
    world.until(lambda: world.work.ranges.settled[ZERO] == 3)
    assert world.looks() == [{ZERO: (0, 3)}]
