"""Runs pieces of a sweep on Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reconcilers.words.errors import Refused, SparkDied
from streaming.again.pieces import Piece, SweptPiece
from streaming.again.scan import Scanning, sweep_task
from streaming.pipeline.spark_errors import WORKERS_ERROR, cause_of, spark_there

MOST_TASKS = 8


def on_workers(
    spark: SparkSession, scanning: Scanning, most_tasks: int = MOST_TASKS
) -> Callable[[Sequence[Piece]], Sequence[SweptPiece]]:
    """A function that scans pieces in Spark tasks; it raises `Refused`, `SparkDied`."""
    task = sweep_task(scanning)

    def scan(pieces: Sequence[Piece]) -> Sequence[SweptPiece]:
        try:
            tasks = min(len(pieces), most_tasks)
            mixed = [each for number in range(tasks) for each in pieces[number::tasks]]
            with spark_there():
                shares = spark.sparkContext.parallelize(mixed, tasks)  # of each table in each share
                return shares.mapPartitions(task).collect()
        except (Py4JJavaError, PySparkException) as failed:
            told = str(failed)
            by_worker = WORKERS_ERROR.search(told)
            raise (Refused if by_worker else SparkDied)(cause_of(told)) from failed

    return scan
