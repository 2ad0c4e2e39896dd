"""The life of a query: watched, restarted when it dies, begun afresh on a bad checkpoint."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from checkpoints import directory, fingerprint
from checkpoints.bookmarks import Offsets, safe_start
from reconcilers.errors import EventsLost, Retryable
from streaming.monitoring.clocks import ClockWatch
from streaming.monitoring.lag import LagWatch
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.batches import Batches
from streaming.pipeline.query import FamilyQuery, backoff
from streaming.topics import Watcher

log = logging.getLogger("reconciler")

TICK = 1.0
CLOCKS_EVERY = 30.0
LAG_EVERY = 5.0
BAD_STARTS = 2
"""Deaths in a row, without one batch and not for Kafka or Cassandra, that condemn a checkpoint."""


@dataclass(slots=True)
class QuerySupervisor:
    """Keeps one query alive until told to stop. Durations are seconds."""

    query: FamilyQuery
    decisions: Batches
    watcher: Watcher
    topics: tuple[str, ...]
    metrics: Metrics
    clocks: ClockWatch
    lag: LagWatch
    fingerprint: fingerprint.Fingerprint
    window_ms: int
    restart_backoff_max: float
    accept_loss: bool = False
    _deaths: int = 0
    _clocks_at: float = field(default=float("-inf"))
    _lag_at: float = field(default=float("-inf"))

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
        plan = directory.newest(self.query.checkpoint)
        if plan is not None and plan.watermark > time.time() * 1000:
            ahead = plan.watermark / 1000 - time.time()
            self._start_fresh(f"its watermark is {ahead:.0f} s ahead of the clock")
        elif plan is None or directory.query_id(self.query.checkpoint) is None:
            self._start_fresh("there is no checkpoint to go on from")
        else:
            self._check_retention(plan.end)
            self.query.start()

    def _start_fresh(self, why: str) -> None:
        offsets = safe_start(self.decisions.recent_bookmarks(), self.window_ms)
        self.query.stop()
        kept = directory.set_aside(self.query.checkpoint)
        log.warning(
            "fresh start from %s: %s; old checkpoint: %s",
            "the bookmark" if offsets else "the oldest event",
            why,
            kept,
        )
        fingerprint.write(self.query.checkpoint, self.fingerprint)
        if offsets is not None:
            self._check_retention(offsets)
        elif self._begins_late():
            log.warning("Kafka no longer holds the first events: what they told is not known")
            self.decisions.events_lost()
        self.query.starting_offsets = self._still_kept(offsets or {})
        self.query.start()

    def _begins_late(self) -> bool:
        """Whether any topic has lost its first records: nobody may have read them."""
        beginnings = self.watcher.beginning_offsets(self.topics).values()
        return any(beginning > 0 for each in beginnings for beginning in each.values())

    def _still_kept(self, offsets: Offsets) -> Offsets:
        """The offsets, without the partitions that must be read from their beginning."""
        kept: dict[str, dict[int, int]] = {}
        for topic, partitions in self.watcher.beginning_offsets(self.topics).items():
            for partition, beginning in partitions.items():
                wanted = offsets.get(topic, {}).get(int(partition), 0)
                if wanted > beginning:
                    kept.setdefault(topic, {})[int(partition)] = wanted
        return kept

    def _check_retention(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Raises `EventsLost` naming the range that Kafka no longer holds."""
        gone = [
            f"{topic}/{partition} {offsets[topic][int(partition)]}–{beginning - 1}"
            for topic, partitions in self.watcher.beginning_offsets(self.topics).items()
            for partition, beginning in partitions.items()
            if beginning > offsets.get(topic, {}).get(int(partition), beginning)
        ]
        if not gone:
            return
        lost = f"Kafka's retention has passed over unread records: {', '.join(gone)}"
        if not self.accept_loss:
            raise EventsLost(f"{lost}; go on with --accept-loss, then sweep")
        log.error("%s; accepted: a sweep is due", lost)
        self.decisions.events_lost()

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
        now = time.monotonic()
        if now - self._clocks_at > CLOCKS_EVERY:
            self._clocks_at = now
            self.decisions.clock_trouble = self.clocks.trouble()
        if now - self._lag_at > LAG_EVERY:
            self._lag_at = now
            self.decisions.lag = self.lag.measure(self.decisions.read_up_to)

    def _show(self, told: dict[str, Any]) -> None:
        self.metrics.batch_duration.set(told["durationMs"]["triggerExecution"] / 1000)
        self.metrics.state_rows.set(_sum(told, "numRowsTotal"))

    def _restart(self, stop: Event) -> None:
        """Restart a dead query; give its checkpoint up when that is what kills it."""
        self.decisions.check_lease()
        why = self.query.failure()
        self._deaths += 1
        self.metrics.restarts.labels(self.query.job.family.name).inc()
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
