"""Spark's cores: how many tasks run at a time, and which jobs share them."""

from __future__ import annotations

from enum import StrEnum

from pyspark.sql import SparkSession

from streaming.settings import StreamSettings


class Pool(StrEnum):
    """Jobs of one pool run one after the other; pools share the cores evenly."""

    STREAM = "stream"
    SWEEP = "sweep"
    COUNTERS = "counters"


def cores(spark: SparkSession) -> int:
    """How many tasks run at a time now, or ``spark.default.parallelism``."""
    return spark.sparkContext.defaultParallelism


def shares(spark: SparkSession, settings: StreamSettings) -> int:
    """Into how many tasks the looks and repairs of a slice are divided."""
    return settings.shuffle_partitions or cores(spark)


def at_a_time(spark: SparkSession, settings: StreamSettings) -> int:
    """How many of those tasks run at a time."""
    return min(shares(spark, settings), cores(spark))


def use_pool(spark: SparkSession, pool: Pool) -> None:
    """Let the jobs of this thread, and of the query that it starts, run in this pool."""
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
