"""Who looks at a slice and examines its suspects, in how many shares, and what a stop ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from pyspark import TaskContext

from reconcilers.limits.ceiling import Ceiling
from reconcilers.limits.gate import Admission
from reconcilers.words.model import Slot, Suspect
from streaming.pipeline import range_reader
from streaming.pipeline import slice_work as module
from streaming.pipeline.query import FamilyQuery
from streaming.pipeline.range_reader import FEW_RECORDS, RangeReader
from streaming.pipeline.repair_task import AdmittedSuspects, RepairTask
from streaming.pipeline.slice_work import FEW, STOPPING, SliceWork
from streaming.pipeline.slices import Slice
from streaming.pipeline.suspect_cap import Cap
from streaming.steps.outcome import Outcome, Repaired
from tests.unit.stream.test_query_batch import (
    ADMITTED,
    LOOK,
    ONE,
    OUTCOMES,
    SETTLED,
    ZERO,
    Query,
    Work,
    a_query,
)

CORES = 3


@pytest.fixture
def query() -> Query:
    return a_query()


# --- in how many shares a slice is looked at


@pytest.mark.parametrize(("records", "few"), [(1, True), (FEW_RECORDS, True), (501, False)])
def test_few_records_are_one_share(
    query: Query, monkeypatch: pytest.MonkeyPatch, records: int, few: bool
) -> None:
    asked: list[int] = []
    spark = Spark()

    def keys(_reader: RangeReader, read: object, shares: int) -> Spark:
        assert read is spark
        asked.append(shares)
        return spark

    monkeypatch.setattr(RangeReader, "keys", keys)
    query.work.reader = RangeReader(spark, query.work.job)  # type: ignore[arg-type]
    SliceWork._look(query.work, Slice(SETTLED, {**SETTLED, ONE: records}, 1, 1))
    assert asked == [1 if few else CORES]


@pytest.mark.parametrize(
    ("cap", "records", "of_a_share"),
    [
        (None, 501, None),
        (Cap.of_a_share, 501, Cap.of_a_share(CORES, 1_000)),
        (Cap.of_a_share, 1, Cap.of_a_share(1, 1_000)),
    ],
    ids=["a replay returns all", "divided", "one share"],
)
def test_the_suspects_of_a_share_are_capped(
    query: Query,
    monkeypatch: pytest.MonkeyPatch,
    cap: Callable[[int, int], Cap] | None,
    records: int,
    of_a_share: Cap | None,
) -> None:
    asked: list[Cap | None] = []
    spark = Spark()
    monkeypatch.setattr(RangeReader, "keys", lambda *_: spark)
    monkeypatch.setattr(range_reader, "look_task", lambda _job, _apart, some: asked.append(some))
    query.work.reader = RangeReader(spark, query.work.job, cap)  # type: ignore[arg-type]
    SliceWork._look(query.work, Slice(SETTLED, {**SETTLED, ONE: records}, 1, 1))
    assert asked == [of_a_share]


# --- who examines the suspects


@dataclass
class Examined:
    """What was examined in this process, and what on the workers."""

    query: Query
    monkeypatch: pytest.MonkeyPatch
    stopping: Any = None
    here: list[Any] = field(default_factory=list)
    workers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        def task(shares: Iterable[AdmittedSuspects]) -> Iterator[Outcome]:
            self.here.extend(shares)
            return iter(OUTCOMES)

        def on_workers(
            _work: Work, told: object, suspects: list[Suspect], admission: Admission
        ) -> Repaired:
            assert told is task
            self.workers.append((admission, suspects))
            return Repaired(OUTCOMES)

        def repair_task(job: object, batch: str, stopping: Any = None) -> RepairTask:
            self.stopping = stopping
            return task

        self.query.work.spark = Spark()  # type: ignore[assignment]
        self.monkeypatch.setattr(module, "repair_task", repair_task)
        self.monkeypatch.setattr(Work, "_on_workers", on_workers)

    def examine(self, suspects: list[Suspect]) -> list[Outcome]:
        work = self.query.work
        return SliceWork._confirm_and_repair(work, suspects, ADMITTED, "batch").outcomes


@pytest.fixture
def examined(query: Query, monkeypatch: pytest.MonkeyPatch) -> Examined:
    return Examined(query, monkeypatch)


def test_few_suspects_are_examined_without_a_job_of_spark(examined: Examined) -> None:
    few = LOOK.suspects * FEW
    assert examined.examine(few) == OUTCOMES
    assert (examined.here, examined.workers) == ([(ADMITTED, few)], [])


def test_many_suspects_are_examined_on_the_workers(examined: Examined) -> None:
    many = LOOK.suspects * (FEW + 1)
    assert examined.examine(many) == OUTCOMES
    assert (examined.here, examined.workers) == ([], [(ADMITTED, many)])


def test_what_has_failed_cannot_kill_this_process(examined: Examined) -> None:
    failures = examined.query.work.ranges.failures
    failures.failed(examined.query.work.ranges.nothing_left(), 0)
    examined.examine(LOOK.suspects)
    assert (examined.here, len(examined.workers)) == ([], 1)
    failures.done(SETTLED)
    examined.examine(LOOK.suspects)
    assert len(examined.here) == 1


def test_what_is_examined_here_ends_before_a_write_when_the_query_is_stopped(
    examined: Examined,
) -> None:
    examined.examine(LOOK.suspects)
    assert examined.stopping() is None
    examined.query._query = Spark()  # type: ignore[assignment]
    FamilyQuery.stop(examined.query)
    assert examined.stopping() == STOPPING


def test_it_has_stopped_when_the_running_batch_has_ended(query: Query) -> None:
    query._query = Spark()  # type: ignore[assignment]
    stopped = Thread(target=FamilyQuery.stop, args=(query,))
    with query._one_batch:
        stopped.start()
        assert query.work.stopping.wait(60)
        assert stopped.is_alive()
    stopped.join(60)
    assert not stopped.is_alive()


def test_what_is_settled_while_it_is_stopped_is_not_of_the_new_beginning(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = [Slice(SETTLED, {**SETTLED, ZERO: 5000}, 1, 1)]

    def stop(query: Query) -> None:
        while ending:
            query.work.ranges.done(ending.pop())

    monkeypatch.setattr(Query, "stop", stop)
    monkeypatch.setattr(Query, "start", stop)  # which stops what still runs
    query.begin({ZERO: 0, ONE: 0})
    assert query.work.ranges.settled == {ZERO: 0, ONE: 0}


class Spark:
    """A query that stops at once, a context that runs what it is given, a reader of nothing."""

    def __init__(self) -> None:
        self.shares: list[Any] = []
        self.found: list[Any] = []
        self.sparkContext = self.read = self
        self.defaultParallelism = CORES

    def format(self, source: str) -> Spark:
        return self

    def options(self, **options: str) -> Spark:
        return self

    def load(self) -> Spark:
        return self

    def mapInArrow(self, task: object, schema: str) -> Spark:  # noqa: N802 (Spark's name)
        """Of no rows."""
        return self

    def stop(self) -> None:
        """As Spark's."""

    def parallelize(self, shares: list[Any], partitions: int) -> Spark:
        assert len(shares) == partitions, "a share is a task"
        self.shares = shares
        return self

    def mapPartitions(self, task: RepairTask) -> Spark:  # noqa: N802 (Spark's name)
        self.found = [each for share in self.shares for each in task([share])]
        return self

    def collect(self) -> list[Any]:
        return self.found


def test_a_group_is_examined_in_one_task_and_an_empty_share_is_none(query: Query) -> None:
    groups = [replace(LOOK.suspects[0], slot=Slot(uuid4(), uid)) for uid in range(20)]
    for suspects in (groups, groups[:1]):
        spark = query.work.spark = Spark()  # type: ignore[assignment]
        query.work._on_workers(lambda shares: iter(OUTCOMES), [*suspects, *suspects], ADMITTED)
        shares = [[each.slot.group for each in share] for _, share in spark.shares]
        assert 0 < len(shares) <= min(CORES, len(suspects))
        assert all(shares)
        assert sum(map(len, shares)) == 2 * len(suspects)
        assert sum(len(set(share)) for share in shares) == len(suspects)


@dataclass(frozen=True)
class Attempt:
    """Spark's context of a task."""

    number: int

    def attemptNumber(self) -> int:  # noqa: N802 (Spark's name)
        return self.number


@pytest.mark.parametrize(("number", "left"), [(0, 7), (1, 0)])
def test_another_attempt_of_a_share_writes_nothing_more_in_this_minute(
    query: Query, monkeypatch: pytest.MonkeyPatch, number: int, left: int
) -> None:
    """The one before it, whose executor is lost, may have written all that was admitted."""
    admitted = Admission(ceiling=Ceiling(7, 100))
    given: list[Admission] = []

    def task(shares: Iterable[AdmittedSuspects]) -> Iterator[Outcome]:
        given.extend(admission for admission, _ in shares)
        return iter(OUTCOMES)

    monkeypatch.setattr(TaskContext, "get", lambda: Attempt(number))
    query.work.spark = Spark()  # type: ignore[assignment]
    repaired = query.work._on_workers(task, LOOK.suspects, admitted)
    assert repaired == Repaired(OUTCOMES, again=number > 0)
    assert [each.ceiling for each in given] == [Ceiling(left, 100)]


def test_without_a_suspect_nothing_is_examined(examined: Examined) -> None:
    assert examined.examine([]) == []
    assert (examined.here, examined.workers) == ([], [])
