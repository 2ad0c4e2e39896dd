"""One family as one StreamingQuery: Spark lets out what has waited, `SliceWork` works it off."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from checkpoints.bookmarks import Offsets, Positions, nested, numbered
from checkpoints.clock import now_micros
from streaming.pipeline.cores import Pool, use_pool
from streaming.pipeline.family_run import FamilyRun
from streaming.pipeline.sample_events import SampleReader
from streaming.pipeline.spark_errors import cause_of, spark_there
from streaming.pipeline.spark_files import CheckpointFolder
from streaming.pipeline.supervisor import BatchReport
from streaming.pipeline.temporary import logins_folder
from streaming.pipeline.window import closed_window, heartbeat, how_often, settle, wait_for
from streaming.topics import stream_options

log = logging.getLogger("reconciler")

EARLIEST = -2
"""Spark's number for the beginning of a partition."""


@dataclass(slots=True)
class FamilyQuery(FamilyRun):
    """Runs one family. ``partitions`` returns the numbers of a topic's partitions.

    It reads the topics of the positions with which it begins. ``sampled`` receives the sampled
    changes of each batch.
    """

    folder: CheckpointFolder
    partitions: Callable[[str], Iterable[int]]
    sampled: SampleReader | None = None
    _query: StreamingQuery | None = None
    _reported: int = -1
    """The number of the last reported batch of the running query."""
    _one_batch: Lock = field(default_factory=Lock)

    def begin(self, settled: Positions) -> None:
        """Start after these positions: everything before them was looked at."""
        self.stop()
        self.work.ranges.begin(settled)
        self.start()

    def start(self) -> None:
        """Start a fresh query, after the offsets that have already waited."""
        self.stop()
        spark, settings = self.work.spark, self.work.job.settings
        begins, trigger = nested(self.work.ranges.restart()), how_often(settings.stream)
        records = (
            spark.readStream.format("kafka")
            .options(**stream_options(settings.kafka, begins, logins_folder(settings.stream)))
            .option("startingOffsets", self._starting_offsets(begins))
            .load()
        )
        if self.sampled is not None:
            records = self.sampled.observed(records)
        closed = settle(records, heartbeat(spark), settings.stream)
        self.work.stopping.clear()
        self._query, self._reported = None, -1
        use_pool(spark, Pool.STREAM)
        self._query = (
            closed.writeStream.queryName(f"reconciler-{self.name}")
            .outputMode("append")
            .option("checkpointLocation", self.folder.fresh())
            .trigger(processingTime=trigger)
            .foreachBatch(self._batch)
            .start()
        )

    def _starting_offsets(self, begins: Offsets) -> str:
        """The offsets as Spark's JSON, which must name every partition."""
        offsets = {
            topic: {str(number): begin.get(number, EARLIEST) for number in self.partitions(topic)}
            for topic, begin in begins.items()
        }
        return json.dumps(offsets)

    def _batch(self, closed: DataFrame, _batch_id: int) -> None:
        with self._one_batch:  # a stopped query's batch may still run
            self.work.publish_later_looks()
            windows = [closed_window(row) for row in closed.collect()]
            time.sleep(wait_for(windows, self.work.job.settings.stream, now_micros()))
            self.work.work_off(windows)

    # --- its life

    @property
    def alive(self) -> bool:
        """Whether the query runs. Raises `SparkDied` if the JVM of Spark is gone."""
        query = self._query
        with spark_there():
            return query is not None and query.isActive

    def failure(self) -> str:
        """Why it died, in one line. Raises `SparkDied` if the JVM of Spark is gone."""
        query = self._query
        with spark_there():
            error: PySparkException | None = query.exception() if query is not None else None
        told = "" if error is None else str(error)
        return cause_of(told) if told else "stopped"

    def progress(self) -> Iterator[BatchReport]:
        """Reports of the batches that ended since the last call, oldest first.

        Raises `SparkDied` if the JVM of Spark is gone.
        """
        with spark_there():
            reports = self._new_reports()
        for told in reports:
            if told["batchId"] > self._reported and "triggerExecution" in told["durationMs"]:
                self._reported = told["batchId"]
                if self.sampled is not None:
                    self.sampled.told(told)
                yield batch_report(told)

    def _new_reports(self) -> list[dict[str, Any]]:
        """Spark's reports since the last one, oldest first; `recentProgress` reads a hundred."""
        if self._query is None:
            return []
        new = []
        for each in reversed(self._query._jsq.recentProgress()):  # noqa: SLF001 (no public way)
            if each.batchId() <= self._reported:
                break
            new.append(json.loads(each.json()))
        return new[::-1]

    def stop(self) -> None:
        """Stop the query; `FamilyRun.stop`."""
        if self._query is None:
            return
        self.work.stopping.set()
        try:
            self._query.stop()
        except (Py4JError, PySparkException, ConnectionError) as gone:
            log.info("Spark was stopped before its query: %s", type(gone).__name__)
        with self._one_batch:
            pass  # wait for its batch, even if Spark ended without waiting


def batch_report(told: dict[str, Any]) -> BatchReport:
    """What Spark tells of a batch."""
    read: dict[str, dict[int, int]] = {}
    for source in told.get("sources", ()):
        if source.get("description", "").startswith("Kafka"):
            read |= numbered(source.get("endOffset") or {})
    return BatchReport(
        told["durationMs"]["triggerExecution"] / 1000,
        read,
        state_rows=_sum(told, "numRowsTotal"),
        dropped=_sum(told, "numRowsDroppedByWatermark"),
    )


def _sum(told: dict[str, Any], name: str) -> int:
    return sum(operator.get(name, 0) for operator in told.get("stateOperators", ()))
