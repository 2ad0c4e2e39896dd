"""Step 1 on real Spark, without Kafka: which ranges come out, whatever the clock does."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from checkpoints.bookmarks import Place
from checkpoints.clock import now_micros
from streaming.pipeline.failures import SliceFailures
from streaming.pipeline.query import batch_report
from streaming.pipeline.ranges import Ranges
from streaming.pipeline.slices import Closed
from streaming.pipeline.supervisor import BatchReport
from streaming.pipeline.window import (
    closed_window,
    closed_windows,
    heartbeat,
    how_often,
    settle,
    wait_for,
)
from streaming.settings import StreamSettings
from tests.fakes.checkpoints.progress import MemoryFailingSlices

DELAY, WINDOW = 10.0, 1.0
MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)
SECOND = 1_000_000
ZERO, ONE = ("t", 0), ("t", 1)
MANY = 1000

Read = tuple[float, Sequence[tuple[Place, int, int]]]
"""When a batch read (s), and which offsets of which partition, from and to before."""


@dataclass
class Out:
    """The windows that came out, in order, rows that were dropped, the most that Spark kept."""

    closed: list[Closed]
    dropped: int
    kept: int

    def ranges(self, *settled: Place) -> dict[Place, tuple[int, int]]:
        """What a stream looks at that had settled nothing of these partitions."""
        return self.ranges_after(dict.fromkeys(settled, 0))

    def ranges_after(self, settled: dict[Place, int]) -> dict[Place, tuple[int, int]]:
        """What a stream looks at that had settled so far."""
        ranges = Ranges(SliceFailures(MemoryFailingSlices(), "s"))
        ranges.begin(settled)
        ranges.close(self.closed)
        return {
            place: each for piece in ranges.slices(MANY) for place, each in piece.ranges.items()
        }


def run(spark: SparkSession, folder: Path, batches: Sequence[Read]) -> Out:
    """One query over these batches, a file each; its clock reads what the batch says."""
    source, closed = folder / "source", list[Closed]()
    source.mkdir()

    def take(rows: DataFrame, _number: int) -> None:
        closed.extend(as_closed(row) for row in rows.collect())

    schema = "topic STRING, partition INT, offset BIGINT, read_at TIMESTAMP"
    read = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(source))
    query = (
        closed_windows(read, DELAY, WINDOW)
        .writeStream.outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(take)
        .start()
    )
    told: list[BatchReport] = []
    try:
        for number, batch in enumerate(batches):
            write(source / f"{number:03}.json", batch)
            query.processAllAvailable()
        told = [batch_report(json.loads(each.json)) for each in query.recentProgress]
    finally:
        query.stop()
    dropped = sum(each.dropped for each in told)
    return Out(closed, dropped, max(each.state_rows for each in told))


def write(file: Path, batch: Read) -> None:
    """A batch as a file, with the heartbeat's row."""
    at, parts = batch
    read_at = (MIDNIGHT + timedelta(seconds=at)).isoformat()
    rows: list[dict[str, Any]] = [{"read_at": read_at}]
    for (topic, partition), first, end in parts:
        rows += [
            {"topic": topic, "partition": partition, "offset": offset, "read_at": read_at}
            for offset in range(first, end)
        ]
    unfinished = file.with_name(f".{file.name}")
    unfinished.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    unfinished.rename(file)


def as_closed(row: Row) -> Closed:
    place = None if row.topic is None else (row.topic, row.partition)
    return Closed(row.until, place, 0 if place is None else row["last"] + 1)


def test_a_range_comes_out_when_its_window_has_waited_for_the_delay(
    spark: SparkSession, tmp_path: Path
) -> None:
    read: list[Read] = [(100.0, [(ZERO, 0, 5), (ONE, 0, 2)]), (100.4, [(ZERO, 5, 9)])]
    out = run(spark, tmp_path, [*read, (111.5, []), (112, [])])
    assert out.ranges(ZERO, ONE) == {ZERO: (0, 9), ONE: (0, 2)}
    assert out.dropped == 0
    assert run(spark, folder_of(tmp_path), [*read, (110.9, []), (110.9, [])]).closed == []


def folder_of(folder: Path) -> Path:
    """Another one."""
    made = folder / "another"
    made.mkdir()
    return made


def test_a_window_without_a_record_comes_out_too(spark: SparkSession, tmp_path: Path) -> None:
    out = run(spark, tmp_path, [(100, []), (101, []), (115, []), (116, [])])
    ends = [each.until % (3600 * SECOND) for each in out.closed]
    assert ends == [101 * SECOND, 102 * SECOND]
    assert all(each.place is None for each in out.closed)


def test_a_small_step_back_of_the_clock_mixes_windows_and_loses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    steps = [(100.0, 0), (101.0, 10), (99.0, 20), (101.5, 30)]
    read: list[Read] = [(at, [(ZERO, first, first + 10)]) for at, first in steps]
    out = run(spark, tmp_path, [*read, (115, []), (116, []), (117, [])])
    ends = {each.until % (60 * SECOND): each.end for each in out.closed if each.place}
    assert ends == {40 * SECOND: 30, 41 * SECOND: 10, 42 * SECOND: 40}
    assert out.ranges(ZERO) == {ZERO: (0, 40)}
    assert out.dropped == 0


def test_a_step_back_beyond_the_delay_drops_rows_and_that_is_seen_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A partition that is silent from then on would never show that something is missing."""
    read: list[Read] = [(200.0, [(ZERO, 0, 10)]), (200.5, []), (150.0, [(ZERO, 10, 20)])]
    out = run(spark, tmp_path, [*read, (201, []), (215, []), (216, []), (230, [])])
    assert out.ranges(ZERO) == {ZERO: (0, 10)}
    assert out.dropped == 2, "the range of the partition, and the heartbeat"


def test_after_an_hour_back_a_fresh_query_goes_on_after_what_is_settled(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What the supervisor begins where rows were dropped: by the clock as it is now."""
    first: list[Read] = [(4000, [(ZERO, 0, 10)]), (4015, [(ZERO, 10, 20)]), (4016, [])]
    stepped: list[Read] = [(416, [(ZERO, 20, 30)]), (417, [])]
    before = run(spark, tmp_path, [*first, *stepped])
    settled = {place: end for place, (_, end) in before.ranges(ZERO).items()}
    assert (settled, before.dropped > 0) == ({ZERO: 10}, True)
    again: list[Read] = [(417, [(ZERO, 10, 30)]), (431, []), (432, [])]
    after = run(spark, folder_of(tmp_path), again)
    assert after.ranges_after(settled) == {ZERO: (10, 30)}
    assert after.dropped == 0


def test_spark_keeps_a_row_for_each_window_and_partition_however_many_records(
    spark: SparkSession, tmp_path: Path
) -> None:
    windows = range(3)
    read: list[Read] = [
        (100.0 + n, [(place, 50 * n, 50 * (n + 1)) for place in (ZERO, ONE)]) for n in windows
    ]
    out = run(spark, tmp_path, [*read, (120, []), (121, [])])
    assert out.ranges(ZERO, ONE) == {ZERO: (0, 150), ONE: (0, 150)}
    beat = 1
    assert out.kept == len(windows) * (2 + beat) + beat, "the last opens one more"


def test_the_heartbeat_moves_the_watermark_of_idle_topics(
    spark: SparkSession, tmp_path: Path
) -> None:
    nothing = spark.createDataFrame([], "topic STRING, partition INT, offset BIGINT")
    source = spark.readStream.schema(nothing.schema).json(str(folder_of(tmp_path)))
    settings = StreamSettings(delay=0.6, window=0.1)
    closed: list[Closed] = []
    early: list[Closed] = []

    def take(rows: DataFrame, _number: int) -> None:
        windows = [closed_window(row) for row in rows.collect()]
        time.sleep(wait_for(windows, settings, now_micros()))
        judged_at = now_micros()
        early.extend(each for each in windows if each.until + 600_000 > judged_at)
        closed.extend(windows)

    query = (
        settle(source, heartbeat(spark), settings)
        .writeStream.outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime=how_often(settings))
        .foreachBatch(take)
        .start()
    )
    try:
        while len(closed) < 20 and query.isActive:
            query.awaitTermination(1)
    finally:
        query.stop()
    assert len(closed) >= 20
    assert all(each.place is None for each in closed)
    assert early == [], "whatever a batch takes, what comes out has waited for the delay"
