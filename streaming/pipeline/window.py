"""Step 1, settle: every record waits for the delay D, under a watermark. Native, no Python.

Spark's state does not hold the records that wait, but their offsets: the last of each partition and
window, about 2 D/W windows at any rate. When a window closes, its records are read again from Kafka
(`ranges.py`, `query.py`).

The watermark is on the time at which Spark read a record, not on the writers' clocks. A replayed or
late event is therefore never "late". A heartbeat row in every batch moves the watermark on idle
topics.

A batch uses the watermark that the batch before it has set, one trigger ago, or longer if batches
take longer than a trigger (`LONG_BATCH`). The watermark is therefore D less that time behind: a
released record is D old if the batches are that far apart. If they are closer, the batch waits for
the rest (`wait_for`). A window is half a trigger long, so a record is looked at about D to D + 1.5
times the distance of two batches after it was read.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from checkpoints.clock import to_micros
from reconcilers.words.model import Micros
from streaming.pipeline.slices import Closed
from streaming.settings import StreamSettings

LONG_BATCH = 1.0
"""Seconds that a batch with a look takes, about: batches are no closer together."""


def heartbeat(spark: SparkSession) -> DataFrame:
    """One row a batch, also after restarts and clock steps (unlike the ``rate`` source)."""
    return (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 1)
        .option("numPartitions", 1)
        .load()
        .select(F.lit(None).cast("string").alias("topic"))
    )


def settle(records: DataFrame, beat: DataFrame, settings: StreamSettings) -> DataFrame:
    """Windows of offsets that have waited for the delay, or will within a trigger or `LONG_BATCH`.

    Columns: ``until`` (the window's end, µs), ``topic``, ``partition``, ``last`` (offset). A window
    without a record is released too, with the heartbeat alone, which has no topic.
    """
    places = records.select("topic", "partition", "offset")
    together = places.unionByName(beat, allowMissingColumns=True)
    read = together.withColumn("read_at", F.current_timestamp())
    return closed_windows(read, settings.delay - _early(settings), every(settings) / 2)


def closed_windows(places: DataFrame, delay: float, window: float) -> DataFrame:
    """The windows of `settle`, of rows with the time of reading (``read_at``); durations in s."""
    return (
        places.withWatermark("read_at", f"{_milliseconds(delay)} milliseconds")
        .groupBy(F.window("read_at", f"{_length(window)} milliseconds"), "topic", "partition")
        .agg(F.max("offset").alias("last"))
        .select(F.unix_micros("window.end").alias("until"), "topic", "partition", "last")
    )


def closed_window(row: Row) -> Closed:
    """A row of `closed_windows` as a `Closed`."""
    if row.topic is None:
        return Closed(row.until)
    return Closed(row.until, (row.topic, row.partition), row["last"] + 1)


def wait_for(closed: Iterable[Closed], settings: StreamSettings, now: Micros) -> float:
    """Seconds until all of these windows have waited for the delay; at most how early they close.

    A longer wait is needed only if the clock was set back. Young writes are then found when they
    are confirmed.
    """
    newest = max((each.until for each in closed), default=0)
    left = newest + to_micros(settings.delay) - now
    return min(max(0, left), to_micros(_early(settings))) / to_micros(1)


def how_often(settings: StreamSettings) -> str:
    """The time between two batches, in Spark's words."""
    return f"{_length(every(settings))} milliseconds"


def every(settings: StreamSettings) -> float:
    """Seconds from one batch to the next."""
    return settings.trigger or settings.window


def _early(settings: StreamSettings) -> float:
    """Seconds before the end of its delay at which a window may close, for the next batch."""
    return min(max(every(settings), LONG_BATCH), settings.delay / 2)


def _length(seconds: float) -> int:
    return max(1, _milliseconds(seconds))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
