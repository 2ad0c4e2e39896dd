"""One family as one StreamingQuery: settled ranges of offsets, and the work for each slice."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from checkpoints.bookmarks import Offsets, Positions, flat, nested
from checkpoints.clock import now_micros
from reconcilers.limits.gate import Admission
from reconcilers.words.model import Micros, Slot, Suspect, Wake, number_of
from streaming.pipeline.range_reader import RangeReader
from streaming.pipeline.ranges import Ranges
from streaming.pipeline.repair_task import RepairTask, repair_task
from streaming.pipeline.slices import Slice
from streaming.pipeline.spark_errors import cause_of, is_of_a_record, spark_there
from streaming.pipeline.spark_files import CheckpointFolder
from streaming.pipeline.window import closed_window, heartbeat, how_often, settle, wait_for
from streaming.pipeline.worker import BatchLook, Job
from streaming.steps.outcome import Outcome
from streaming.topics import stream_options

log = logging.getLogger("reconciler")

GIVEN_UP = "given up"
"""The reason of a dead letter that may be a good record: `SliceFailures`."""
FEW = 20
"""This many suspects, at about 10 ms each, take as long as a Spark job on two workers."""
STOPPING = "the stream is being stopped"
EARLIEST = -2
"""Spark's number for the beginning of a partition."""


class Decisions(Protocol):
    """What the driver decides for each slice; `streaming.pipeline.batches.Batches` does it."""

    def admit(self, look: BatchLook, piece: Slice) -> Admission:
        """What may be repaired in this slice. Raises if this process may not write at all."""

    def canaries_alone(self, piece: Slice) -> BatchLook | None:
        """The canaries of a slice that holds nothing else; None for any other slice."""

    def unreadable(self) -> frozenset[Slot]:
        """The places that are known to be unreadable."""

    def recall(self) -> None:
        """Read again what is stored. Raises `Retryable` if Cassandra does not answer."""

    def record_outcomes(self, outcomes: list[Outcome]) -> None:
        """Record the outcomes of the suspects."""

    def later_looks(self, now: Micros) -> list[Wake]:
        """Keys that are due to be looked at again ``now`` (µs)."""

    def ended(self, look: BatchLook, piece: Slice) -> None:
        """Record a finished slice."""


@dataclass(slots=True)
class _Running:
    """The running query, and the number of its last reported batch."""

    query: StreamingQuery | None = None
    reader: RangeReader | None = None
    """Shared by all queries of the family."""
    reported: int = -1
    stopping: Event = field(default_factory=Event)


@dataclass(slots=True)
class FamilyQuery:
    """Runs one family. ``partitions`` returns the numbers of a topic's partitions.

    It reads the topics of the positions with which it begins.
    """

    spark: SparkSession
    job: Job
    folder: CheckpointFolder
    decisions: Decisions
    partitions: Callable[[str], Iterable[int]]
    ranges: Ranges
    _running: _Running = field(default_factory=_Running)
    _one_batch: Lock = field(default_factory=Lock)

    def begin(self, settled: Positions) -> None:
        """Start after these positions: everything before them was looked at."""
        self.stop()
        self.ranges.begin(settled)
        self.start()

    def start(self) -> None:
        """Start a fresh query, after the offsets that have already waited."""
        self.stop()
        settings, family = self.job.settings, self.job.family
        begins, trigger = nested(self.ranges.restart()), how_often(settings.stream)
        records = (
            self.spark.readStream.format("kafka")
            .options(**stream_options(settings.kafka, begins))
            .option("startingOffsets", self._starting_offsets(begins))
            .load()
        )
        closed = settle(records, heartbeat(self.spark), settings.stream)
        self._running = _Running(reader=self._running.reader)
        self._running.query = (
            closed.writeStream.queryName(f"reconciler-{family.name}")
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

    # --- a batch

    def _batch(self, closed: DataFrame, _batch_id: int) -> None:
        with self._one_batch:  # a stopped query's batch may still run
            self.publish(self.decisions.later_looks(now_micros()))  # before anything is settled
            windows = [closed_window(row) for row in closed.collect()]
            time.sleep(wait_for(windows, self.job.settings.stream, now_micros()))
            self.ranges.close(windows)
            pieces = self.ranges.slices(self.job.settings.kafka.max_offsets_per_batch)
            for piece in pieces:
                try:
                    self._settle(piece)
                except Exception:
                    if self._running.stopping.is_set():
                        self.ranges.failures.interrupted()
                    else:
                        self.ranges.failures.failed(piece, now_micros())
                    raise
            if not pieces:
                self.decisions.ended(BatchLook(), self.ranges.nothing_left())

    def _settle(self, piece: Slice) -> None:
        failures, now = self.ranges.failures, now_micros()
        hopeless = failures.is_hopeless(piece, now)
        if hopeless:  # an outage looks the same: try again once Cassandra answers
            self.decisions.recall()
            if failures.has_killed(piece):  # another attempt would kill this process
                self._give_up(piece)
                return
        failures.begun(piece, now)
        try:
            self._examine(piece)
        except Exception as failed:
            if not hopeless or not is_of_a_record(str(failed)):
                raise
            self._give_up(piece)

    def _examine(self, piece: Slice) -> None:
        look = self.decisions.canaries_alone(piece) or self._look(piece)
        admission = self.decisions.admit(look, piece)
        outcomes = self._confirm_and_repair(look.suspects, admission, piece.name)
        self.decisions.record_outcomes(outcomes)
        self.decisions.ended(look, piece)
        self.ranges.done(piece)

    def _give_up(self, piece: Slice) -> None:
        """Make a dead letter of a record that holds up all others although Cassandra answers."""
        ((topic, partition), (offset, _)) = next(iter(piece.ranges.items()))
        log.error("%s/%s@%s is given up: a dead letter", topic, partition, offset)
        place = {"topic": topic, "partition": partition, "offset": offset}
        self.job.keep_dead_letters([{**place, "reason": GIVEN_UP, "raw": None}])
        self.decisions.ended(BatchLook(bad=Counter({GIVEN_UP: 1})), piece)
        self.ranges.done(piece)

    def _look(self, piece: Slice) -> BatchLook:
        """Steps 2 to 4: read the records again; one task on the workers handles a group."""
        if self._running.reader is None:
            self._running.reader = RangeReader(self.spark, self.job)
        return self._running.reader.look(piece.ranges, self.decisions.unreadable())

    def _confirm_and_repair(
        self, suspects: list[Suspect], admission: Admission, batch: str
    ) -> list[Outcome]:
        """Steps 5 to 7: of few suspects in this process, otherwise on the workers.

        After a failure the workers do it in any case: what kills a worker leaves this process
        alive.
        """
        if not suspects:
            return []
        if len(suspects) > FEW or self.ranges.failures.suspected:
            return self._on_workers(repair_task(self.job, batch), suspects, admission)
        stopping = self._running.stopping.is_set
        task = repair_task(self.job, batch, lambda: STOPPING if stopping() else None)
        return list(task([(admission, suspects)]))

    def _on_workers(
        self, task: RepairTask, suspects: list[Suspect], admission: Admission
    ) -> list[Outcome]:
        """Steps 5 to 7 on the workers, each group in one task."""
        count = self.job.settings.stream.shuffle_partitions
        shares: list[list[Suspect]] = [[] for _ in range(count)]
        for suspect in suspects:
            shares[number_of(suspect.slot.group) % count].append(suspect)
        full = [each for each in shares if each]
        admitted = zip(admission.shared([len(each) for each in full]), full, strict=True)
        tasks = self.spark.sparkContext.parallelize(list(admitted), len(full))
        return tasks.mapPartitions(task).collect()

    # --- its life

    @property
    def name(self) -> str:
        """The name of the family."""
        return self.job.family.name

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Publish keys to be looked at again."""
        self.job.publish(wakes)

    @property
    def alive(self) -> bool:
        """Whether the query runs. Raises `SparkDied` if the JVM of Spark is gone."""
        query = self._running.query
        with spark_there():
            return query is not None and query.isActive

    def failure(self) -> str:
        """Why it died, in one line. Raises `SparkDied` if the JVM of Spark is gone."""
        query = self._running.query
        with spark_there():
            error: PySparkException | None = query.exception() if query is not None else None
        told = "" if error is None else str(error)
        return cause_of(told) if told else "stopped"

    def progress(self) -> Iterator[dict[str, Any]]:
        """Spark's reports of the batches that ended since the last call, oldest first.

        Raises `SparkDied` if the JVM of Spark is gone.
        """
        running = self._running
        with spark_there():
            reports = running.query.recentProgress if running.query is not None else ()
        for each in reports:
            told: dict[str, Any] = json.loads(each.json)
            if told["batchId"] > running.reported and "triggerExecution" in told["durationMs"]:
                running.reported = told["batchId"]
                yield told

    def release(self, read: Offsets) -> bool:
        """Release what was read before these offsets and has not come out; whether there is any."""
        return self.ranges.release(flat(read))

    def end(self) -> None:
        """Stop for good, and record a clean end."""
        self.stop()
        self.ranges.failures.end()

    def stop(self) -> None:
        """Stop the query. Nothing of it runs after this returns; unsettled work is repeated.

        A task on a worker is interrupted; an examination in this process ends before its next
        write.
        """
        if self._running.query is None:
            return
        self._running.stopping.set()
        try:
            self._running.query.stop()
        except (Py4JError, PySparkException, ConnectionError) as gone:
            log.info("Spark was stopped before its query: %s", type(gone).__name__)
        with self._one_batch:
            pass  # wait for its batch, even if Spark ended without waiting
