"""The life of a query: watched, and restarted after settled offsets if it dies or drops rows."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol

from checkpoints.bookmarks import Offsets, Positions, nested
from reconcilers.words.errors import EndedItself, EventsLost, Retryable
from reconcilers.words.model import Wake
from streaming.monitoring.clocks import ClockWatch
from streaming.monitoring.lag import LagWatch
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.deaths import Deaths
from streaming.pipeline.starting_point import StartingPoint

log = logging.getLogger("reconciler")

TICK = 1.0
CLOCKS_EVERY = 30.0
KAFKA_EVERY = 5.0
BATCHES_TO_CLOSE = 3
"""Batches after the end of its window that release a record."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A batch that has ended: how long it took, and up to where it has ``read``.

    ``state_rows`` are in Spark's state; ``dropped`` came after the watermark.
    """

    seconds: float
    read: Offsets
    state_rows: int = 0
    dropped: int = 0


class Supervised(Protocol):
    """What is kept alive: `query.FamilyQuery`, or `family_thread.FamilyThread`."""

    @property
    def name(self) -> str:
        """The name of the family."""

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Publish keys to be looked at again."""

    @property
    def alive(self) -> bool:
        """Whether it runs. Raises `SparkDied` if there is no Spark to ask."""

    def begin(self, settled: Positions) -> None:
        """Start after these positions: everything before them was looked at."""

    def start(self) -> None:
        """Start again, after the offsets that have already waited."""

    def stop(self) -> None:
        """Stop, if it runs. Nothing of it runs after this returns."""

    def end(self) -> None:
        """Stop for good, if it runs."""

    def progress(self) -> Iterator[BatchReport]:
        """Reports of the batches that ended since the last call."""

    def failure(self) -> str:
        """Why it died, in one line."""

    def release(self, read: Offsets) -> bool:
        """Release what was read before these offsets and has not come out; whether there is any."""


class BatchMemory(Protocol):
    """The state between a query's batches; `streaming.pipeline.batches.Batches` is the real one."""

    def start(self) -> list[Wake]:
        """Read the stored state. Returns the keys to look at at once."""

    def recall(self) -> None:
        """Read the stored state again, after a batch that failed."""

    def check_lease(self) -> None:
        """Raise `AlreadyRunning` if the lease is lost."""


@dataclass(slots=True)
class Measurements:
    """Periodic measurements beside the batches.

    ``commit`` commits settled offsets for operators; ``read_up_to`` is what was read.
    ``checks`` raise `EndedItself` if only a new process can go on.
    """

    clocks: ClockWatch
    lag: LagWatch
    commit: Callable[[], None]
    checks: Sequence[Callable[[], None]] = ()
    read_up_to: Offsets = field(default_factory=dict)
    _clocks_at: float = float("-inf")
    _kafka_at: float = float("-inf")

    def take(self) -> bool:
        """Take the measurements that are due. Returns whether Kafka was asked."""
        now = time.monotonic()
        if now - self._clocks_at > CLOCKS_EVERY:
            self._clocks_at = now
            self.clocks.measure()
            self.check()
        if now - self._kafka_at <= KAFKA_EVERY:
            return False
        self._kafka_at = now
        self.lag.measure(self.read_up_to)
        self.commit()
        return True

    def check(self) -> None:
        """Run all checks. Raises `EndedItself` if only a new process can go on, or `Retryable`."""
        for each in self.checks:
            each()


@dataclass(slots=True)
class Overdue:
    """Finds records that Spark has read and should have released by now. Monotonic seconds.

    A watermark ahead of the clock drops rows, and with them offsets, without an error. In a
    partition that is silent afterwards nothing else would show the loss.
    """

    after: float
    _read: deque[tuple[float, Offsets, int]] = field(default_factory=deque)

    def batch(self, now: float, read: Offsets) -> Offsets | None:
        """Take in a batch that read up to ``read``. Returns the offsets that are now overdue."""
        self._read = deque(
            (at, up_to, batches + (now - at > self.after)) for at, up_to, batches in self._read
        )
        self._read.append((now, read, 0))
        due = None
        while self._read[0][2] >= BATCHES_TO_CLOSE:
            due = self._read.popleft()[1]
        return due

    def clear(self) -> None:
        """Forget all batches: other offsets are read now."""
        self._read.clear()


@dataclass(slots=True)
class QuerySupervisor:
    """Keeps one query alive until it is stopped; ``restart_backoff_max`` is seconds."""

    query: Supervised
    decisions: BatchMemory
    starting: StartingPoint
    measurements: Measurements
    metrics: Metrics
    overdue: Overdue
    restart_backoff_max: float
    _deaths: Deaths = field(default_factory=Deaths)

    def run(self, stop: Event) -> None:
        """Start, watch, restart.

        Raises `EventsLost`, `AlreadyRunning` on a lost lease, `EndedItself` if only a new process
        can go on.
        """
        self.query.publish(self.decisions.start())
        self._begin()
        while not stop.wait(TICK):
            try:
                self._watch()
                if not self.query.alive and not stop.is_set():
                    self._restart(stop)
            except Retryable as gone:
                log.warning("waiting: %s", gone)
            except EndedItself:
                if not stop.wait(TICK):  # a signal to the whole process group ends Spark first
                    self.query.stop()
                    raise
        self.query.end()
        self.measurements.commit()

    def _begin(self) -> None:
        """Start after the settled offsets, those of another process or of a query with lost events.

        The query is stopped first: what it settled later would be offsets of the old topics.
        """
        self.query.stop()
        settled = self.starting.positions()
        self.measurements.read_up_to = nested(settled)
        self.overdue.clear()
        self.query.begin(settled)

    def _start_again(self) -> None:
        """Start after what has waited; how far the query has read is unknown until it reports."""
        self.measurements.read_up_to = {}
        self.query.start()

    # --- watch

    def _watch(self) -> None:
        for report in self.query.progress():
            self._deaths = Deaths()
            self._show(report)
            if report.dropped:
                self.metrics.dropped.inc(report.dropped)
                log.warning(
                    "the clock is behind the watermark: a fresh query, after what is settled"
                )
                self._start_again()
                return
            self._release(report.read)
        if self.measurements.take():
            self._check_topics()

    def _check_topics(self) -> None:
        """Begin again if a topic was recreated. Raises `EventsLost` unless that is accepted."""
        try:
            self.starting.check()
        except EventsLost as lost:
            log.warning("%s", lost)
            self._begin()

    def _show(self, report: BatchReport) -> None:
        self.metrics.batch_duration.observe(report.seconds)
        self.metrics.state_rows.labels(self.query.name).set(report.state_rows)
        self.measurements.read_up_to = report.read

    def _release(self, read: Offsets) -> None:
        """Release overdue records: in a silent partition nothing else would show them."""
        due = self.overdue.batch(time.monotonic(), read)
        if due is not None and self.query.release(due):
            log.warning("records that were read did not come out in time: they are looked at now")

    def _restart(self, stop: Event) -> None:
        """Start a dead query again."""
        self.decisions.check_lease()
        why = self.query.failure()
        self._deaths.count(why, time.monotonic())
        self.metrics.restarts.labels(self.query.name).inc()
        pause = backoff(self._deaths.number - 1, self.restart_backoff_max)
        log.warning("the query died: %s; restarting in %.0f s", why, pause)
        stop.wait(pause)
        if stop.is_set():
            return
        self.measurements.check()
        self.decisions.recall()
        if self.starting.has_lost():  # Spark reports a loss by several errors
            self._begin()  # raises unless the loss is accepted
        else:
            self._start_again()


def backoff(restarts: int, most: float) -> float:
    """Seconds to wait before the next restart: 1, 2, 4 … up to ``most``."""
    return min(most, 2.0 ** min(restarts, 16))
