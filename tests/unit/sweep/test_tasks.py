"""How many tasks a sweep has on so many cores, and that each reads its part of the rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streaming.again import workers
from streaming.again.scan import Scanning
from streaming.again.workers import (
    TasksOf,
    beside_a_stream,
    on_all_cores,
    on_one_host,
    on_workers,
)
from streaming.pipeline.worker import Job
from streaming.settings import Settings

NOTHING: Any = None


class Spark:
    """So many cores; a job is taken down."""

    def __init__(self, cores: int) -> None:
        self.sparkContext = self
        self.defaultParallelism = cores
        self.pool = self.tasks = NOTHING

    def setLocalProperty(self, _name: str, pool: str) -> None:  # noqa: N802 (Spark's name)
        self.pool = pool

    def parallelize(self, _pieces: object, tasks: int) -> Spark:
        self.tasks = tasks
        return self

    def mapPartitions(self, _task: object) -> Spark:  # noqa: N802 (Spark's name)
        return self

    def collect(self) -> list[object]:
        return []


@pytest.mark.parametrize(
    ("cores", "pieces", "tasks_of", "tasks", "at_a_time"),
    [
        (2, 100, on_all_cores, 8, 2),
        (2, 100, beside_a_stream, 1, 1),
        (1, 100, beside_a_stream, 1, 1),
        (16, 100, on_all_cores, 64, 16),
        (16, 100, beside_a_stream, 8, 8),
        (16, 3, on_all_cores, 3, 3),
    ],
)
def test_a_sweep_follows_sparks_cores(
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    pieces: int,
    tasks_of: TasksOf,
    tasks: int,
    at_a_time: int,
) -> None:
    sent: list[Scanning] = []
    monkeypatch.setattr(workers, "sweep_task", sent.append)
    spark: Any = Spark(cores)
    job = Job(Settings(), NOTHING, "", NOTHING, NOTHING)
    scans = on_one_host(Scanning(job, NOTHING, NOTHING, NOTHING, NOTHING))
    scan = on_workers(spark, scans, tasks_of)
    scan([SimpleNamespace()] * pieces)  # type: ignore[list-item]
    assert (spark.tasks, spark.pool) == (tasks, "sweep")
    assert [each.job.tasks for each in sent] == [at_a_time]


def test_a_worker_reads_its_part() -> None:
    shared: list[int] = []
    ours = SimpleNamespace(share=shared.append)
    job = Job(Settings(), NOTHING, "", lambda _settings, _family: ours, NOTHING)  # type: ignore[arg-type, return-value]
    job.of_tasks(6).connections()
    job.connections()
    assert shared == [6, 1]
