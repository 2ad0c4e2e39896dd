"""One family beside that of messages: a thread that works off what has waited, without a query.

A query of Spark has a batch in each window, also when nothing happens. Tables that seldom change do
not need one: this thread waits for the ends of the topics, and only a range that names the family
leads to a job of Spark.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread

from py4j.protocol import Py4JError

from checkpoints.bookmarks import Positions, nested
from reconcilers.words.errors import Retryable
from streaming.pipeline.cores import Pool, use_pool
from streaming.pipeline.family_run import FamilyRun
from streaming.pipeline.spark_errors import cause_of
from streaming.pipeline.supervisor import TICK, BatchReport
from streaming.pipeline.waiting_ends import PartitionEnds, WaitingEnds

log = logging.getLogger("reconciler")


@dataclass(slots=True)
class FamilyThread(FamilyRun):
    """Runs one family; `supervisor.Supervised`. ``ends`` are shared by all such families."""

    ends: WaitingEnds
    _thread: Thread | None = None
    _begun: float = 0.0
    """When it began at its positions (monotonic): ends from before may be of other topics."""
    _reported_at: float = 0.0
    _died_of: str = ""
    _reports: SimpleQueue[BatchReport] = field(default_factory=SimpleQueue)

    def begin(self, settled: Positions) -> None:
        """Start after these positions: everything before them was looked at."""
        self.stop()
        self.work.ranges.begin(settled)
        self._begun = self.ends.clock()
        self.start()

    def start(self) -> None:
        """Start a fresh thread, which begins with what has waited and is not settled."""
        self.stop()
        self.work.ranges.restart()
        self.work.stopping.clear()
        self._died_of, self._reports = "", SimpleQueue()
        self._thread = Thread(target=self._run, name=f"slices of {self.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            context = self.work.spark.sparkContext
            context.setJobGroup(self._group, self._group, interruptOnCancel=True)
            use_pool(self.work.spark, Pool.STREAM)
            self._reported_at = time.monotonic()
            self.work.work_off((), self._slice_ended)
            ends, began = None, self.ends.clock()
            while not self.work.stopping.wait(TICK):
                newer, now = self._next(), self.ends.clock()
                if newer is not ends or now - began > self.ends.every:
                    ends, began = newer, now
                    self._batch(ends)
        except Exception as failed:
            log.debug("%s has failed", self.name, exc_info=failed)
            self._died_of = cause_of(f"{type(failed).__module__}.{type(failed).__name__}: {failed}")
            raise SystemExit from failed  # of this thread: its supervisor asks for the reason

    def _next(self) -> PartitionEnds | None:
        """The newest ends that have waited; None as long as none has, or Kafka does not answer."""
        try:
            return self.ends.waited(self._begun)
        except Retryable as gone:
            log.warning("waiting: %s", gone)
            return None

    def _batch(self, ends: PartitionEnds | None) -> None:
        self._reported_at = time.monotonic()
        self.work.publish_later_looks()
        self.work.work_off(ends.windows() if ends is not None else (), self._slice_ended)
        self._report()

    def _slice_ended(self) -> None:
        """A backlog is one batch of many slices, and may take hours."""
        self._report()
        self.work.publish_later_looks()

    def _report(self) -> None:
        """Report how far all is looked at, and how long that took."""
        now = time.monotonic()
        since, self._reported_at = self._reported_at, now
        read = nested(self.work.ranges.waited())
        self._reports.put(BatchReport(now - since, read))

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def failure(self) -> str:
        """Why it died, in one line."""
        return self._died_of or "stopped"

    def progress(self) -> Iterator[BatchReport]:
        """Reports of the batches that ended since the last call, oldest first."""
        while True:
            try:
                yield self._reports.get_nowait()
            except Empty:
                return

    def stop(self) -> None:
        """Stop the thread; `FamilyRun.stop`."""
        self.work.stopping.set()
        while self._thread is not None and self._thread.is_alive():
            try:
                self.work.spark.sparkContext.cancelJobGroup(self._group)
            except (Py4JError, ConnectionError) as gone:
                log.info("Spark was stopped before its jobs: %s", type(gone).__name__)
            self._thread.join(TICK)

    @property
    def _group(self) -> str:
        return f"reconciler-{self.name}"
