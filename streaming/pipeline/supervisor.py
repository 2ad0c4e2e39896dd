"""The life of a query: watched, and begun anew after what is settled when it dies or drops rows."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

from checkpoints.bookmarks import Offsets, Positions, nested, numbered
from reconcilers.words.errors import EndedItself, EventsLost, Retryable
from reconcilers.words.model import Wake
from streaming.monitoring.clocks import ClockWatch
from streaming.monitoring.lag import LagWatch
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.deaths import Deaths
from streaming.pipeline.starting import StartingPoint

log = logging.getLogger("reconciler")

TICK = 1.0
CLOCKS_EVERY = 30.0
KAFKA_EVERY = 5.0
BATCHES_TO_CLOSE = 3
"""So many batches, once their windows are over, let the records of a batch out."""


class Supervised(Protocol):
    """What is kept alive; `streaming.pipeline.query.FamilyQuery` is the real one."""

    @property
    def name(self) -> str:
        """Its family's."""

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Send keys to be looked at again."""

    @property
    def alive(self) -> bool:
        """Whether it runs. Raises `SparkDied` when there is no Spark to ask."""

    def begin(self, settled: Positions) -> None:
        """Start where everything before these positions has been looked at."""

    def start(self) -> None:
        """Start again, after what has waited already."""

    def stop(self) -> None:
        """Stop, if it runs: when this returns, nothing of it is under way."""

    def end(self) -> None:
        """Stop for good, if it runs."""

    def progress(self) -> Iterator[dict[str, Any]]:
        """The batches that ended since the last call, as Spark tells them."""

    def failure(self) -> str:
        """Why it died, in one line."""

    def release(self, read: Offsets) -> bool:
        """What was read before these offsets has waited: look at what did not come out, if any."""


class BatchMemory(Protocol):
    """What a query's batches keep between them (`streaming.pipeline.batches.Batches`)."""

    def start(self) -> list[Wake]:
        """Read what is kept; the keys to look at at once."""

    def recall(self) -> None:
        """Read it anew after a batch that failed."""

    def check_lease(self) -> None:
        """Raises `AlreadyRunning` on a lost lease."""


@dataclass(slots=True)
class Measurements:
    """What is asked of the surroundings now and then, beside the batches.

    ``commit`` tells operators what is settled, ``read_up_to`` is what Spark has read. ``checks``
    raise `EndedItself` where only a new process can go on.
    """

    clocks: ClockWatch
    lag: LagWatch
    commit: Callable[[], None]
    checks: Sequence[Callable[[], None]] = ()
    read_up_to: Offsets = field(default_factory=dict)
    _clocks_at: float = float("-inf")
    _kafka_at: float = float("-inf")

    def take(self) -> bool:
        """Those that are due; whether Kafka was asked."""
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
        """Raises `EndedItself` where only a new process can go on, or `Retryable`."""
        for each in self.checks:
            each()


@dataclass(slots=True)
class Overdue:
    """Knows when records that Spark has read should have come out. Seconds of a steady clock.

    A watermark that runs ahead of the clock drops rows, and so their offsets, without an error; of
    a partition that is silent afterwards nothing would ever be missed.
    """

    after: float
    _read: deque[tuple[float, Offsets, int]] = field(default_factory=deque)

    def batch(self, now: float, read: Offsets) -> Offsets | None:
        """A batch has ended that read up to these offsets; those that must have come out by now."""
        waiting = [
            (at, up_to, batches + (now - at > self.after)) for at, up_to, batches in self._read
        ]
        self._read = deque(waiting)
        self._read.append((now, read, 0))
        due = None
        while self._read[0][2] >= BATCHES_TO_CLOSE:
            due = self._read.popleft()[1]
        return due

    def clear(self) -> None:
        """Other offsets are read now."""
        self._read.clear()


@dataclass(slots=True)
class QuerySupervisor:
    """Keeps one query alive until told to stop; ``restart_backoff_max`` is seconds."""

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

        Raises `EventsLost`, `AlreadyRunning` on a lost lease, `EndedItself` where only a new
        process can go on.
        """
        self.query.publish(self.decisions.start())
        self._begin()
        while not stop.wait(TICK):
            try:
                self._watch()
                if not self.query.alive:
                    self._restart(stop)
            except Retryable as gone:
                log.warning("waiting: %s", gone)
            except EndedItself:
                if not stop.wait(TICK):  # what ends all processes of a group ends Spark first
                    self.query.stop()
                    raise
        self.query.end()
        self.measurements.commit()
        log.info("stopped; the next start goes on after what is settled")

    def _begin(self) -> None:
        """Where another process, or a query whose events were lost, has settled everything.

        What that query still settled after its topics were asked for would be of the old ones.
        """
        self.query.stop()
        settled = self.starting.positions()
        self.measurements.read_up_to = nested(settled)
        self.overdue.clear()
        self.query.begin(settled)

    def _start_again(self) -> None:
        """After what has waited; how far the fresh query has read is not known until it tells."""
        self.measurements.read_up_to = {}
        self.query.start()

    # --- watch

    def _watch(self) -> None:
        for told in self.query.progress():
            self._deaths = Deaths()
            self._show(told)
            dropped = _sum(told, "numRowsDroppedByWatermark")
            if dropped:
                self.metrics.dropped.inc(dropped)
                log.warning(
                    "the clock is behind the watermark: a fresh query, after what is settled"
                )
                self._start_again()
                return
            self._release(told)
        if self.measurements.take():
            self._check_topics()

    def _check_topics(self) -> None:
        """Begin again where a topic was made anew. Raises `EventsLost` unless that is accepted."""
        try:
            self.starting.check()
        except EventsLost as lost:
            log.warning("%s", lost)
            self._begin()

    def _show(self, told: dict[str, Any]) -> None:
        self.metrics.batch_duration.set(told["durationMs"]["triggerExecution"] / 1000)
        self.metrics.state_rows.set(_sum(told, "numRowsTotal"))
        self.measurements.read_up_to = read_up_to(told)

    def _release(self, told: dict[str, Any]) -> None:
        """Of a partition that is silent since, nothing else would show what did not come out."""
        due = self.overdue.batch(time.monotonic(), read_up_to(told))
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
        if self.starting.has_lost():  # whatever it died of: Spark names a loss in several ways
            self._begin()  # raises unless the loss is accepted
        else:
            self._start_again()


def read_up_to(told: dict[str, Any]) -> dict[str, dict[int, int]]:
    """The end offsets of Kafka's source in a batch, as Spark tells them."""
    found: dict[str, dict[int, int]] = {}
    for source in told.get("sources", ()):
        if source.get("description", "").startswith("Kafka"):
            found |= numbered(source.get("endOffset") or {})
    return found


def _sum(told: dict[str, Any], name: str) -> int:
    return sum(operator.get(name, 0) for operator in told.get("stateOperators", ()))


def backoff(restarts: int, most: float) -> float:
    """Seconds to wait before the next restart: 1, 2, 4 … up to ``most``."""
    return min(most, 2.0 ** min(restarts, 16))
