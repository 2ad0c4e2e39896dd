"""Runs pieces of a sweep on Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark import RDD, SparkContext
from pyspark.sql import SparkSession

from reconcilers.words.errors import Refused
from streaming.again.pieces import Piece, SweptPiece
from streaming.again.scan import Scanning, sweep_task
from streaming.pipeline.cores import Pool, cores, use_pool
from streaming.pipeline.spark_errors import job_of

TasksOf = Callable[[int], int]
"""How many tasks a sweep has on so many cores."""


def on_all_cores(cores_there: int) -> int:
    """Some for each core, because not all take the same time."""
    return 4 * cores_there


def beside_a_stream(cores_there: int) -> int:
    """Half of the cores are the stream's; a sweep waits for its pace."""
    return max(1, cores_there // 2)


@dataclass(frozen=True, slots=True)
class Tasks:
    """Into how many tasks a job is divided, and how many of them run at a time."""

    number: int
    at_a_time: int


class PieceScans(Protocol):
    """Scans pieces in one job of Spark's; see `on_one_host` and `on_executors.OnExecutors`."""

    def __call__(
        self, spark: SparkContext, pieces: Sequence[Piece], tasks: Tasks
    ) -> Sequence[SweptPiece]:
        """What was found in these pieces."""


def on_one_host(scanning: Scanning) -> PieceScans:
    """Scans on workers that share the folders of the fingerprints."""

    def scan(spark: SparkContext, pieces: Sequence[Piece], tasks: Tasks) -> Sequence[SweptPiece]:
        task = sweep_task(scanning.of_tasks(tasks.at_a_time))
        return in_shares(spark, pieces, tasks.number).mapPartitions(task).collect()

    return scan


def in_shares(spark: SparkContext, pieces: Sequence[Piece], tasks: int) -> RDD[Piece]:
    """The pieces for so many tasks, those of each table in each share."""
    mixed = [each for number in range(tasks) for each in pieces[number::tasks]]
    return spark.parallelize(mixed, tasks)


def on_workers(
    spark: SparkSession, scans: PieceScans, tasks_of: TasksOf = on_all_cores
) -> Callable[[Sequence[Piece]], Sequence[SweptPiece]]:
    """A function that scans pieces in Spark tasks; it raises `Refused`, `SparkDied`."""

    def scan(pieces: Sequence[Piece]) -> Sequence[SweptPiece]:
        with job_of(Refused):
            use_pool(spark, Pool.SWEEP)
            there = cores(spark)
            number = min(len(pieces), tasks_of(there))
            return scans(spark.sparkContext, pieces, Tasks(number, min(number, there)))

    return scan
