"""Step 2, settle: hold every key for the delay D, under a watermark. Native, no Python.

The watermark is on the moment Spark read a record, not on the writers' clocks: so a replayed or
late event is never "late". A heartbeat row in every batch keeps the watermark moving on idle
topics.
A key comes out D to D + W after it was read, once a window, however often it changed.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

AGGREGATED = ("written", "from_truth", "capture_delay")
"""Of a key's columns, what its events are summed up by; by all others they are told apart."""


def heartbeat(spark: SparkSession) -> DataFrame:
    """One row a batch, restarts and clock steps included (unlike the ``rate`` source)."""
    return (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 1)
        .option("numPartitions", 1)
        .load()
        .select(F.lit(True).alias("heartbeat"))
    )


def settle(keys: DataFrame, beat: DataFrame, delay: float, window: float) -> DataFrame:
    """Keys D to D + W seconds after they were read; durations in seconds.

    Columns: what tells keys apart, then the sums (of fixed length: a hash aggregate). The
    heartbeat's own row comes out too: filtered here, the optimiser would filter it before the
    watermark, which would then stand still.
    """
    apart = [*(name for name in keys.columns if name not in AGGREGATED), "heartbeat"]
    together = keys.withColumn("heartbeat", F.lit(False)).unionByName(
        beat, allowMissingColumns=True
    )
    return (
        together.withColumn("read_at", F.current_timestamp())
        .withWatermark("read_at", f"{_milliseconds(delay)} milliseconds")
        .groupBy(F.window("read_at", f"{_milliseconds(window)} milliseconds"), *apart)
        .agg(
            F.min("written").alias("oldest"),
            F.max("written").alias("newest"),
            F.max("from_truth").alias("from_truth"),
            F.min("capture_delay").alias("quickest"),
            F.count("*").cast("int").alias("changes"),
        )
        .drop("window")
    )


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
