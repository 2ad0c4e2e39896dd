"""One family as one StreamingQuery, restarted when it dies; and the two passes of each batch."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from checkpoints.bookmarks import Offsets
from checkpoints.clock import now_micros
from checkpoints.directory import planned, query_id
from reconcilers.errors import CorruptCheckpoint, SparkDied
from reconcilers.model import Micros, Suspect, Wake, number_of
from reconcilers.policy import Admission
from streaming.pipeline.batch_record import BatchPlace
from streaming.pipeline.envelope import decode
from streaming.pipeline.window import heartbeat, settle
from streaming.pipeline.worker import (
    RESULT_SCHEMA,
    BatchLook,
    Job,
    look_task,
    read_looks,
    repair_task,
)
from streaming.steps.outcome import Outcome
from streaming.topics import event_topics, spark_options

log = logging.getLogger("reconciler")

EARLIEST = -2
"""Spark's word for a partition's beginning."""


class Decisions(Protocol):
    """What the driver decides between and after the passes (`batches.Batches`)."""

    def admit(self, look: BatchLook, now: Micros) -> Admission:
        """What may be repaired in this batch. Raises when this process may not write at all."""

    def record_outcomes(self, outcomes: list[Outcome]) -> None:
        """What became of the suspects."""

    def later_looks(self, now: Micros) -> list[Wake]:
        """Keys that are due to be looked at again."""

    def ended(self, look: BatchLook, batch: BatchPlace) -> None:
        """The batch is done: bookmark, consumer group, metrics."""


@dataclass(slots=True)
class FamilyQuery:
    """Runs one family."""

    spark: SparkSession
    job: Job
    checkpoint: Path
    decisions: Decisions
    partitions: Callable[[str], Iterable[int]]
    _starts_at: Offsets = field(default_factory=dict)
    _query: StreamingQuery | None = None
    _reported: int = -1

    def start_fresh(self, offsets: Offsets) -> None:
        """Start with a new checkpoint; a partition that is missing is read from its beginning."""
        self._starts_at = offsets
        self.start()

    def start(self) -> None:
        """Start the query from its checkpoint."""
        stream = self.job.settings.stream
        self._reported = -1
        self._query = (
            self._settled_keys()
            .writeStream.queryName(f"reconciler-{self.job.family.name}")
            .outputMode("append")
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(processingTime=f"{round(stream.window * 1000)} milliseconds")
            .foreachBatch(self._batch)
            .start()
        )

    def _settled_keys(self) -> DataFrame:
        settings, family = self.job.settings, self.job.family
        topics = (*event_topics(settings, family), self.job.suspects_topic)
        records = (
            self.spark.readStream.format("kafka")
            .options(**spark_options(settings.kafka, topics))
            .option("startingOffsets", self._starting_offsets(topics))
            .load()
        )
        keys = decode(records, family, settings.cassandra.keyspace, self.job.suspects_topic)
        beat = heartbeat(self.spark)
        return settle(keys, beat, settings.stream.delay, settings.stream.window)

    def _starting_offsets(self, topics: tuple[str, ...]) -> str:
        """Spark's JSON, which must name every partition."""
        if not self._starts_at:
            return "earliest"
        return json.dumps(
            {
                topic: {
                    str(number): self._starts_at.get(topic, {}).get(number, EARLIEST)
                    for number in self.partitions(topic)
                }
                for topic in topics
            }
        )

    # --- a batch

    def _batch(self, settled: DataFrame, batch_id: int) -> None:
        place = self._place(batch_id)
        look = self._look(settled)
        admission = self.decisions.admit(look, place.plan.batch_time)
        outcomes = self._confirm_and_repair(look.suspects, admission, place.name)
        self.decisions.record_outcomes(outcomes)
        self.publish(self.decisions.later_looks(now_micros()))
        self.decisions.ended(look, place)

    def _place(self, batch_id: int) -> BatchPlace:
        identity, plan = query_id(self.checkpoint), planned(self.checkpoint, batch_id)
        if identity is None or plan is None:
            raise CorruptCheckpoint(f"{self.checkpoint} does not hold batch {batch_id}")
        before = planned(self.checkpoint, batch_id - 1) if batch_id else None
        start = before.end if before is not None else self._starts_at
        return BatchPlace(identity, batch_id, start, plan)

    def _look(self, settled: DataFrame) -> BatchLook:
        """Steps 3 and 4 on the workers: one task handles a group (a mailbox).

        The keys of one row (its two events name it differently) come one after the other, so that
        it is read once.
        """
        key = [column.name for column in self.job.family.key]
        shares = (
            settled.repartition(self.job.settings.stream.shuffle_partitions, key[0])
            .sortWithinPartitions(*key)
            .mapInArrow(look_task(self.job), RESULT_SCHEMA)
        )
        return read_looks(row.result for row in shares.collect())

    def _confirm_and_repair(
        self, suspects: list[Suspect], admission: Admission, batch: str
    ) -> list[Outcome]:
        """Steps 5 to 7 on the workers, again a group in one task."""
        if not suspects:
            return []
        count = self.job.settings.stream.shuffle_partitions
        shares: list[list[Suspect]] = [[] for _ in range(count)]
        for suspect in suspects:
            shares[number_of(suspect.slot.group) % count].append(suspect)
        task = repair_task(self.job, admission, batch)
        return self.spark.sparkContext.parallelize(shares, count).mapPartitions(task).collect()

    # --- its life

    @property
    def name(self) -> str:
        """Its family's."""
        return self.job.family.name

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Send keys to be looked at again."""
        self.job.publish(wakes)

    @property
    def alive(self) -> bool:
        """Whether the query runs. Raises `SparkDied` when there is no Spark to ask."""
        try:
            return self._query is not None and self._query.isActive
        except (Py4JError, ConnectionError) as gone:
            raise SparkDied(f"Spark's JVM is gone ({type(gone).__name__}): start again") from gone

    def failure(self) -> str:
        """Why it died, in one line."""
        error: PySparkException | None = self._query.exception() if self._query else None
        return _cause(str(error)) if error is not None else "stopped"

    def progress(self) -> Iterator[dict[str, Any]]:
        """The batches that ended since the last call, oldest first, as Spark tells them."""
        if self._query is None:
            return
        for each in self._query.recentProgress:
            told: dict[str, Any] = json.loads(each.json)
            if told["batchId"] > self._reported and "triggerExecution" in told["durationMs"]:
                self._reported = told["batchId"]
                yield told

    def stop(self) -> None:
        """Stop after the running batch was interrupted; it is executed again at the next start."""
        if self._query is None:
            return
        try:
            self._query.stop()
        except (Py4JError, PySparkException, ConnectionError) as gone:
            log.info("Spark was stopped before its query: %s", type(gone).__name__)

    def blames_checkpoint(self) -> bool:
        """Whether it died of its checkpoint, not of a batch or of the servers around it."""
        error = str(self._query.exception()) if self._query is not None else ""
        if CorruptCheckpoint.__name__ in error:
            return True
        if THROUGH_OUR_BATCH in error:
            return STATE_STORE in error
        return not any(sign in error for sign in NOT_THE_CHECKPOINT)

    def lost_events(self) -> bool:
        """Whether it died because Kafka no longer holds what it was to read."""
        error = str(self._query.exception()) if self._query is not None else ""
        return "KAFKA_DATA_LOSS" in error


THROUGH_OUR_BATCH = "raised by the Python Proxy"
STATE_STORE = "org.apache.spark.sql.execution.streaming.state."
"""Signs in an error: our own batch function failed; but by Spark's state store, which it reads."""
NOT_THE_CHECKPOINT = ("org.apache.kafka", "KAFKA_DATA_LOSS")


def _cause(told: str) -> str:
    """The line of an error that says what happened: of ours, else Spark's, else Python's."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(("reconcilers.errors.", "kafka.errors."))]
    sparks = [line for line in lines if line.startswith((": org.apache.spark", "Caused by: "))]
    pythons = [line for line in lines if PYTHONS_ERROR.match(line)]
    return (ours[-1:] or sparks[:1] or pythons[-1:] or lines[:1] or ["no reason given"])[0][:500]


PYTHONS_ERROR = re.compile(r"[A-Za-z_.]+(Error|Exception): ")
