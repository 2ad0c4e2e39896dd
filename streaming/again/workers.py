"""Runs pieces of a sweep on Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reconcilers.words.errors import Refused, SparkDied
from streaming.again.scan import Piece, Scanning, SweptPiece, sweep_task
from streaming.pipeline.spark_errors import cause_of

MOST_TASKS = 8


def on_workers(
    spark: SparkSession, scanning: Scanning, most_tasks: int = MOST_TASKS
) -> Callable[[Sequence[Piece]], Sequence[SweptPiece]]:
    """A function that scans pieces in Spark tasks; it raises `Refused`, `SparkDied`."""
    task = sweep_task(scanning)

    def scan(pieces: Sequence[Piece]) -> Sequence[SweptPiece]:
        try:
            shares = spark.sparkContext.parallelize(pieces, min(len(pieces), most_tasks))
            return shares.mapPartitions(task).collect()
        except (Py4JJavaError, PySparkException) as failed:
            raise Refused(cause_of(str(failed))) from failed
        except (Py4JError, ConnectionError) as gone:
            raise SparkDied(f"Spark's JVM is gone ({type(gone).__name__}): start again") from gone

    return scan
