"""When memory begins, and what ends it.

Memory begins with the first frontier: when every node's writes up to a moment have been released
from every partition, and every watched table was captured at that moment. Any sign of missed
changes ends it. It begins again with the next frontier.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from checkpoints.lineage import Lineage
from checkpoints.losses import Cause, Loss, Losses, end_memory
from reconcilers.capture.frontier import Marks, Proven
from reconcilers.declared.capture import unchanged
from reconcilers.words.errors import Retryable
from reconcilers.words.model import Micros
from streaming.monitoring.metrics import Metrics

log = logging.getLogger("reconciler")

CHECK_EVERY = 20.0
"""Seconds; a write that is not captured is not looked at before the delay, 45 s."""
BEGIN_EVERY = 2.0
"""Seconds between checks while the first canaries are still to be written."""


class Hindrance(Enum):
    """Why memory has not begun yet; the name is the metric's label."""

    NOT_CAPTURED = "CDC is off for a watched table, or the keyspace's writes are not durable"
    NO_CANARY = "a node has no canary yet"
    AWAITED = "the canaries of every node are awaited"


class CapturedTables(Protocol):
    """Cassandra's state of capture; `streaming.tables.Canaries` is the real one."""

    def captured(self) -> str | None:
        """Names the watched tables as they are captured; None if one is not captured."""

    def watched(self) -> str | None:
        """As `captured`, with the ring and the table of canaries."""

    def marks(self) -> Marks | None:
        """The canaries to wait for, after which all writes up to now have been released."""


class Memories(Protocol):
    """What a stream tells of capture and its losses; `MemoryWatch` acts on all of it."""

    def check(self) -> None:
        """Check that everything is captured as it was. Raises `Retryable`."""

    def heard(self, proven: Proven) -> None:
        """Take in how far each node is looked at."""

    def lost(self, until: Micros, why: str) -> None:
        """Canaries show that events from before ``until`` (µs) may be lost. Raises `Retryable`."""

    def lost_until_now(self, why: str) -> None:
        """Kafka has lost events from before now. Raises `Retryable`."""

    def doubted(self, why: str, until: Micros | None) -> None:
        """Our keyspace is in doubt; it was last known to be right at ``until`` (µs)."""


@dataclass(slots=True)
class MemoryReport:
    """Shows whether memory has begun."""

    metrics: Metrics
    _told: Hindrance | None = None

    def tell(self, why: Hindrance | None) -> None:
        """Show why memory has not begun, None if it has; each reason is logged once."""
        if why is not None and why is not self._told:
            log.info("lineage has not begun: %s", why.value)
        self._told = why
        for each in Hindrance:
            self.metrics.no_memory.labels(each.name.lower()).set(each is why)


@dataclass(slots=True)
class MemoryWatch:
    """Called by one thread. ``clock`` is µs, ``steady_clock`` monotonic seconds."""

    lineage: Lineage
    losses: Losses
    tables: CapturedTables
    clock: Callable[[], Micros]
    report: MemoryReport
    steady_clock: Callable[[], float] = time.monotonic
    _awaited: Marks | None = None
    _check_at: float = float("-inf")

    def check(self) -> None:
        """End memory if tables are not captured as they were when it began. Raises `Retryable`.

        If memory has not begun, wait for the next frontier.
        """
        captured, watching = self.tables.captured(), self.lineage.watching()
        if watching is not None and not unchanged(watching.captured, captured):
            self.end(_why(watching.captured, captured))
            watching = None
        if watching is not None:
            self._awaited = None
            self.report.tell(None)
        elif self._awaited is None or self._awaited.watched != self.tables.watched():
            self._awaited = None if captured is None else self.tables.marks()
            self.report.tell(self._hindrance(captured))
        pause = BEGIN_EVERY if watching is None and self._awaited is None else CHECK_EVERY
        self._check_at = self.steady_clock() + pause

    def heard(self, proven: Proven) -> None:
        """Take in how far each node is looked at. A check that fails is tried again."""
        try:
            if self._awaited is not None and self._awaited.passed(proven):
                self._begin(self._awaited)
            if self.steady_clock() > self._check_at:
                self.check()
        except Retryable as failed:
            log.warning("not known whether all changes are captured: %s", failed)

    def lost(self, until: Micros, why: str, cause: Cause = Cause.CANARIES) -> None:
        """Events from before ``until`` (µs) may be lost: memory restarts at that time.

        It never restarts before its present beginning, nor in the future. Raises `Retryable`.
        """
        self.losses.record(Loss(until, why, cause))
        begins, watching = min(until, self.clock()), self.lineage.watching()
        if watching is not None and begins > watching.since:
            self.lineage.watch_from(begins, watching.captured)

    def lost_until_now(self, why: str) -> None:
        """Kafka has lost events from before now. Raises `Retryable`."""
        self.lost(self.clock(), why, Cause.RETENTION)

    def end(self, why: str, cause: Cause = Cause.CAPTURE) -> None:
        """End lineage: changes may have been missed. Raises `Retryable`."""
        end_memory(self.lineage, self.losses.record, Loss(self.clock(), why, cause))
        self._awaited = None

    def doubted(self, why: str, until: Micros | None) -> None:
        """Our keyspace is in doubt; it was last known to be right at ``until`` (µs; None: unknown).

        Memory that began later holds every change since. If none has begun, the same doubt counts
        as one loss, however often a process starts. Raises `Retryable`.
        """
        watching = self.lineage.watching()
        if watching is None and [each.why for each in self.losses.since(0)[:1]] == [why]:
            return
        if watching is None or until is None or watching.since <= until:
            self.end(why, Cause.OWN_KEYSPACE)

    def _begin(self, awaited: Marks) -> None:
        """Begin memory if tables and ring are as they were when the marks were read."""
        captured = self.tables.captured()
        if captured is not None and self.tables.watched() == awaited.watched:
            self.lineage.watch_from(self.clock(), captured)
            log.info("lineage has begun: every change is received from now on")
            self.report.tell(None)
        self._awaited = None

    def _hindrance(self, captured: str | None) -> Hindrance:
        if self._awaited is not None:
            return Hindrance.AWAITED
        return Hindrance.NOT_CAPTURED if captured is None else Hindrance.NO_CANARY


def _why(before: str, now: str | None) -> str:
    if not before:
        return "it is not known how they were captured when lineage began"
    if now is None:
        return Hindrance.NOT_CAPTURED.value
    return "a watched table was recreated or altered"
