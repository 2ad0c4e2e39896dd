"""The life of a query: watched, restarted when it dies, begun afresh on a bad checkpoint."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from checkpoints import directory, fingerprint
from checkpoints.bookmarks import Offsets
from checkpoints.clock import now_micros, to_seconds
from reconcilers.errors import Retryable
from reconcilers.model import Wake
from streaming.monitoring.clocks import ClockWatch
from streaming.monitoring.lag import LagWatch
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.starting import StartingPoint

log = logging.getLogger("reconciler")

TICK = 1.0
CLOCKS_EVERY = 30.0
LAG_EVERY = 5.0
BAD_STARTS = 2
"""Deaths in a row, without one batch and not for Kafka or Cassandra, that condemn a checkpoint."""


class Supervised(Protocol):
    """What is kept alive; `streaming.pipeline.query.FamilyQuery` is the real one."""

    @property
    def checkpoint(self) -> Path:
        """Its directory."""

    @property
    def name(self) -> str:
        """Its family's."""

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Send keys to be looked at again."""

    @property
    def alive(self) -> bool:
        """Whether it runs. Raises `SparkDied` when there is no Spark to ask."""

    def start(self) -> None:
        """Start from the checkpoint."""

    def start_fresh(self, offsets: Offsets) -> None:
        """Start with a new checkpoint at these offsets."""

    def stop(self) -> None:
        """Stop, if it runs."""

    def progress(self) -> Iterator[dict[str, Any]]:
        """The batches that ended since the last call, as Spark tells them."""

    def failure(self) -> str:
        """Why it died, in one line."""

    def blames_checkpoint(self) -> bool:
        """Whether it died of its checkpoint."""

    def lost_events(self) -> bool:
        """Whether it died because Kafka no longer holds what it was to read."""


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
    """Clocks and lag, measured now and then; ``read_up_to`` is where the last batch ended."""

    clocks: ClockWatch
    lag: LagWatch
    read_up_to: Callable[[], Offsets]
    _clocks_at: float = float("-inf")
    _lag_at: float = float("-inf")

    def take(self) -> None:
        """Those that are due."""
        now = time.monotonic()
        if now - self._clocks_at > CLOCKS_EVERY:
            self._clocks_at = now
            self.clocks.measure()
        if now - self._lag_at > LAG_EVERY:
            self._lag_at = now
            self.lag.measure(self.read_up_to())


@dataclass(slots=True)
class QuerySupervisor:
    """Keeps one query alive until told to stop; ``restart_backoff_max`` is seconds."""

    query: Supervised
    decisions: BatchMemory
    starting: StartingPoint
    measurements: Measurements
    metrics: Metrics
    fingerprint: fingerprint.Fingerprint
    restart_backoff_max: float
    _deaths: int = 0

    def run(self, stop: Event) -> None:
        """Start, watch, restart. Raises `EventsLost`, or `AlreadyRunning` on a lost lease."""
        self._start()
        while not stop.wait(TICK):
            try:
                self._watch()
                if not self.query.alive:
                    self._restart(stop)
            except Retryable as gone:
                log.warning("waiting: %s", gone)
        self.query.stop()
        log.info("stopped; the next start goes on from here")

    # --- start

    def _start(self) -> None:
        """From the checkpoint if it can be gone on from, else from the bookmark."""
        self.query.publish(self.decisions.start())
        plan, now = directory.newest(self.query.checkpoint), now_micros()
        if plan is not None and plan.watermark > now:
            ahead = to_seconds(plan.watermark - now)
            self._start_fresh(f"its watermark is {ahead:.0f} s ahead of the clock")
        elif plan is None or directory.query_id(self.query.checkpoint) is None:
            self._start_fresh("there is no checkpoint to go on from")
        else:
            self.starting.check_retention(plan.end)
            self.query.start()

    def _start_fresh(self, why: str) -> None:
        bookmarked = self.starting.bookmarked()
        self.query.stop()
        kept = directory.set_aside(self.query.checkpoint)
        log.warning(
            "fresh start from %s: %s; old checkpoint: %s",
            "the bookmark" if bookmarked else "the oldest event",
            why,
            kept,
        )
        fingerprint.write(self.query.checkpoint, self.fingerprint)
        self.query.start_fresh(self.starting.kept(bookmarked))

    # --- watch

    def _watch(self) -> None:
        for told in self.query.progress():
            self._deaths = 0
            self._show(told)
            dropped = _sum(told, "numRowsDroppedByWatermark")
            if dropped:
                self.metrics.dropped.inc(dropped)
                self._start_fresh("the clock is behind the watermark: rows would be dropped")
                return
        self.measurements.take()

    def _show(self, told: dict[str, Any]) -> None:
        self.metrics.batch_duration.set(told["durationMs"]["triggerExecution"] / 1000)
        self.metrics.state_rows.set(_sum(told, "numRowsTotal"))

    def _restart(self, stop: Event) -> None:
        """Restart a dead query; give its checkpoint up when that is what kills it."""
        self.decisions.check_lease()
        why = self.query.failure()
        self._deaths += 1
        self.metrics.restarts.labels(self.query.name).inc()
        pause = backoff(self._deaths - 1, self.restart_backoff_max)
        log.warning("the query died: %s; restarting in %.0f s", why, pause)
        stop.wait(pause)
        if stop.is_set():
            return
        self.decisions.recall()
        if self.query.lost_events():
            self._start_fresh(why)  # raises EventsLost unless the loss is accepted
        elif self._deaths >= BAD_STARTS and self.query.blames_checkpoint():
            self._deaths = 0
            self._start_fresh(why)
        else:
            self.query.start()


def _sum(told: dict[str, Any], name: str) -> int:
    return sum(operator.get(name, 0) for operator in told.get("stateOperators", ()))


def backoff(restarts: int, most: float) -> float:
    """Seconds to wait before the next restart: 1, 2, 4 … up to ``most``."""
    return min(most, 2.0 ** min(restarts, 16))
