"""Step 1, settle: every record waits for the delay D, under a watermark. Native, no Python.

What waits in Spark's state is not the records, but their offsets: the last of each partition and
window, about D/W + 2 windows, at any rate. When a window closes, its records are read again
from Kafka (`ranges.py`, `query.py`).

The watermark is on the moment Spark read a record, not on the writers' clocks: so a replayed or
late event is never "late". A heartbeat row in every batch keeps the watermark moving on idle
topics. A record comes out D to D + W after it was read.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streaming.pipeline.slices import Closed
from streaming.settings import StreamSettings


def heartbeat(spark: SparkSession) -> DataFrame:
    """One row a batch, restarts and clock steps included (unlike the ``rate`` source)."""
    return (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 1)
        .option("numPartitions", 1)
        .load()
        .select(F.lit(None).cast("string").alias("topic"))
    )


def settle(records: DataFrame, beat: DataFrame, delay: float, window: float) -> DataFrame:
    """Windows of offsets that have waited for ``delay``; durations in seconds.

    Columns: ``until`` (the window's end, µs), ``topic``, ``partition``, ``last`` (offset). A window
    without a record comes out too, with the heartbeat alone, which has no topic.
    """
    places = records.select("topic", "partition", "offset")
    together = places.unionByName(beat, allowMissingColumns=True)
    return closed_windows(together.withColumn("read_at", F.current_timestamp()), delay, window)


def closed_windows(places: DataFrame, delay: float, window: float) -> DataFrame:
    """The same, of rows that say when they were read (``read_at``)."""
    return (
        places.withWatermark("read_at", f"{_milliseconds(delay)} milliseconds")
        .groupBy(F.window("read_at", f"{_milliseconds(window)} milliseconds"), "topic", "partition")
        .agg(F.max("offset").alias("last"))
        .select(F.unix_micros("window.end").alias("until"), "topic", "partition", "last")
    )


def closed_window(row: Row) -> Closed:
    """A row of `closed_windows`."""
    if row.topic is None:
        return Closed(row.until)
    return Closed(row.until, (row.topic, row.partition), row["last"] + 1)


def how_often(settings: StreamSettings) -> str:
    """A batch starts so often, as Spark has it."""
    return f"{max(1, _milliseconds(settings.trigger or settings.window))} milliseconds"


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
