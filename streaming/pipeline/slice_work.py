"""The slices of one family, one after the other: looked at, admitted, repaired, settled."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Protocol

from pyspark.sql import SparkSession

from checkpoints.bookmarks import OffsetRanges
from checkpoints.clock import now_micros
from reconcilers.limits.gate import Admission
from reconcilers.words.model import Micros, Slot, Suspect, Wake, number_of
from streaming.pipeline.cores import at_a_time, shares
from streaming.pipeline.ranges import Ranges
from streaming.pipeline.repair_task import RepairTask, attempt, repair_task
from streaming.pipeline.slices import Closed, Slice
from streaming.pipeline.spark_errors import is_of_a_record
from streaming.pipeline.worker import BatchLook, Job
from streaming.steps.outcome import Repaired

log = logging.getLogger("reconciler")

GIVEN_UP = "given up"
"""The reason of a dead letter that may be a good record: `SliceFailures`."""
FEW = 20
"""This many suspects, at about 10 ms each, take as long as a Spark job on two workers."""
STOPPING = "the stream is being stopped"


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

    def record_outcomes(self, repaired: Repaired) -> None:
        """Record what became of the suspects."""

    def later_looks(self, now: Micros) -> list[Wake]:
        """Keys that are due to be looked at again ``now`` (µs)."""

    def ended(self, look: BatchLook, piece: Slice) -> None:
        """Record a finished slice."""


class RecordReader(Protocol):
    """Looks at records; `streaming.pipeline.range_reader.RangeReader` is the real one."""

    def look(self, ranges: OffsetRanges, apart: frozenset[Slot]) -> BatchLook:
        """Look at all ranges together; ``apart`` cannot be read."""


@dataclass(slots=True)
class SliceWork:
    """Works off what has waited, for one family. ``stopping`` is set while it is being stopped."""

    spark: SparkSession
    job: Job
    decisions: Decisions
    ranges: Ranges
    reader: RecordReader
    stopping: Event = field(default_factory=Event)

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Publish keys to be looked at again."""
        self.job.publish(wakes)

    def publish_later_looks(self) -> None:
        """Publish the keys that are due; before anything is settled."""
        self.publish(self.decisions.later_looks(now_micros()))

    def work_off(self, windows: Iterable[Closed], ended: Callable[[], None] = lambda: None) -> None:
        """Look at all that has waited, with these windows; call ``ended`` after each slice.

        Raises what a slice fails with. Slices that a stop leaves are done by the next start.
        """
        self.ranges.close(windows)
        pieces = self.ranges.slices(self.job.settings.kafka.max_offsets_per_batch)
        for piece in pieces:
            if self.stopping.is_set():
                return
            try:
                self._settle(piece)
            except Exception:
                if self.stopping.is_set():
                    self.ranges.failures.interrupted()
                else:
                    self.ranges.failures.failed(piece, now_micros())
                raise
            ended()
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
        repaired = self._confirm_and_repair(look.suspects, admission, piece.name)
        self.decisions.record_outcomes(repaired)
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
        return self.reader.look(piece.ranges, self.decisions.unreadable())

    def _confirm_and_repair(
        self, suspects: list[Suspect], admission: Admission, batch: str
    ) -> Repaired:
        """Steps 5 to 7: of few suspects in this process, otherwise on the workers.

        After a failure the workers do it in any case: what kills a worker leaves this process
        alive.
        """
        if not suspects:
            return Repaired([])
        if len(suspects) > FEW or self.ranges.failures.suspected:
            job = self.job.of_tasks(at_a_time(self.spark, self.job.settings.stream))
            return self._on_workers(repair_task(job, batch), suspects, admission)
        stopping = self.stopping
        task = repair_task(self.job, batch, lambda: STOPPING if stopping.is_set() else None)
        return Repaired(list(task([(admission, suspects)])))

    def _on_workers(
        self, task: RepairTask, suspects: list[Suspect], admission: Admission
    ) -> Repaired:
        """Steps 5 to 7 on the workers, each group in one task."""
        count = shares(self.spark, self.job.settings.stream)
        parts: list[list[Suspect]] = [[] for _ in range(count)]
        for suspect in suspects:
            parts[number_of(suspect.slot.group) % count].append(suspect)
        full = [each for each in parts if each]
        admitted = zip(admission.shared([len(each) for each in full]), full, strict=True)
        tasks = self.spark.sparkContext.parallelize(list(admitted), len(full))
        found = tasks.mapPartitions(partial(attempt, task)).collect()
        outcomes = [outcome for each in found for outcome in each.outcomes]
        return Repaired(outcomes, any(each.again for each in found))
