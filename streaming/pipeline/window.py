"""Step 1, settle: every record waits for the delay D, under a watermark. Native, no Python.

What waits in Spark's state is not the records, but their offsets: the last of each partition and
window, about 2 D/W windows, at any rate. When a window closes, its records are read again
from Kafka (`ranges.py`, `query.py`).

The watermark is on the moment Spark read a record, not on the writers' clocks: so a replayed or
late event is never "late". A heartbeat row in every batch keeps the watermark moving on idle
topics.

A batch works with the watermark that the batch before it has set, one trigger ago, or longer where
batches take longer than a trigger (`LONG_BATCH`). So the watermark is D less that time behind: what
comes out is D old when the batches are that far apart. Where they are closer, the batch waits for
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
"""Seconds that a batch takes which looks at something, about: batches are no closer together."""


def heartbeat(spark: SparkSession) -> DataFrame:
    """One row a batch, restarts and clock steps included (unlike the ``rate`` source)."""
    return (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 1)
        .option("numPartitions", 1)
        .load()
        .select(F.lit(None).cast("string").alias("topic"))
    )


def settle(records: DataFrame, beat: DataFrame, settings: StreamSettings) -> DataFrame:
    """Windows of offsets that have waited for the delay, or do so within a trigger or `LONG_BATCH`.

    Columns: ``until`` (the window's end, µs), ``topic``, ``partition``, ``last`` (offset). A window
    without a record comes out too, with the heartbeat alone, which has no topic.
    """
    places = records.select("topic", "partition", "offset")
    together = places.unionByName(beat, allowMissingColumns=True)
    read = together.withColumn("read_at", F.current_timestamp())
    return closed_windows(read, settings.delay - _early(settings), every(settings) / 2)


def closed_windows(places: DataFrame, delay: float, window: float) -> DataFrame:
    """The same, of rows that say when they were read (``read_at``); durations in seconds."""
    return (
        places.withWatermark("read_at", f"{_milliseconds(delay)} milliseconds")
        .groupBy(F.window("read_at", f"{_length(window)} milliseconds"), "topic", "partition")
        .agg(F.max("offset").alias("last"))
        .select(F.unix_micros("window.end").alias("until"), "topic", "partition", "last")
    )


def closed_window(row: Row) -> Closed:
    """A row of `closed_windows`."""
    if row.topic is None:
        return Closed(row.until)
    return Closed(row.until, (row.topic, row.partition), row["last"] + 1)


def wait_for(closed: Iterable[Closed], settings: StreamSettings, now: Micros) -> float:
    """Seconds until all of these windows have waited for the delay; at most what they come early.

    It is more only where the clock was set back: then what is young is seen as such when it is
    confirmed.
    """
    newest = max((each.until for each in closed), default=0)
    left = newest + to_micros(settings.delay) - now
    return min(max(0, left), to_micros(_early(settings))) / to_micros(1)


def how_often(settings: StreamSettings) -> str:
    """A batch starts so often, as Spark has it."""
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
