"""What the driver decides for each batch: the breaker, admission, which looks are due later.

Between the two passes of a batch it counts the suspects *before* anything is written, and only then
says what may be repaired.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from checkpoints.bookmarks import Bookmark, Bookmarks, Offsets
from checkpoints.clock import now_micros
from checkpoints.directory import Planned
from checkpoints.expiries import KEPT_AFTER_DUE
from checkpoints.journal import Journal
from checkpoints.lease import Lease
from checkpoints.tallies import MARKS_KEPT_DAYS
from reconcilers.family import Family
from reconcilers.finding import Action
from reconcilers.model import Micros, Wake
from reconcilers.policy import (
    Admission,
    Breaker,
    BreakerLimits,
    BreakerState,
    after_batch,
    count_of,
)
from streaming.counters.batch_summary import BatchSummary
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.report import report_change, report_end, report_looks_again
from streaming.pipeline.open_findings import OpenFindings, finding_wake
from streaming.pipeline.scheduled import scheduled_wake
from streaming.pipeline.worker import BatchLook, Connections
from streaming.settings import Settings
from streaming.steps.outcome import Outcome
from streaming.steps.parking import WHOLE_TABLE

log = logging.getLogger("reconciler")

FEW_KEYS = 20
HOUR: Micros = 3_600_000_000
EXPIRIES_KEPT: Micros = round(KEPT_AFTER_DUE.total_seconds() * 1e6)


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """Which batch, of which checkpoint, and what it read.

    ``start`` lacks the partitions that were read from their beginning, as far as is known.
    """

    checkpoint: str
    batch_id: int
    start: Offsets
    plan: Planned

    @property
    def name(self) -> str:
        """The same when the batch is executed again."""
        return f"{self.checkpoint}/{self.batch_id}"


@dataclass(frozen=True, slots=True)
class Rates:
    """The settings that decide here; durations in µs."""

    limits: BreakerLimits
    delay: Micros
    recheck_interval: Micros
    window: Micros

    @classmethod
    def of(cls, settings: Settings) -> Rates:
        """From the settings."""
        repair = settings.repair
        limits = BreakerLimits(
            repair.suspects_per_minute,
            repair.suspect_share,
            repair.removals_per_minute,
            repair.removal_share,
            repair.share_min_keys,
        )
        seconds = settings.stream.delay, repair.recheck_interval, settings.stream.window
        return cls(limits, *(round(each * 1e6) for each in seconds))


@dataclass(slots=True)
class Batches:
    """One family's decisions, batch after batch. ``stream`` names its bookmarks.

    ``tallies`` hears of each batch; ``lag`` is how far the stream is behind Kafka, seconds.
    """

    family: Family
    stream: str
    ports: Connections
    bookmarks: Bookmarks
    lease: Lease | None
    metrics: Metrics
    rates: Rates
    commit: Callable[[Offsets], None]
    observe: bool = False
    open_findings: OpenFindings = field(default_factory=OpenFindings)
    tallies: Callable[[BatchSummary], None] | None = None
    clock_trouble: str | None = None
    lag: float = 0.0
    read_up_to: Offsets = field(default_factory=dict)
    _state: BreakerState = field(default_factory=BreakerState)
    _freshest: Micros = 0
    _read_at: Micros = 0
    _expired_up_to: Micros = 0

    @property
    def journal(self) -> Journal:
        """Where findings are kept."""
        return self.ports.journal

    def start(self) -> list[Wake]:
        """Read the journal; returns the keys to look at at once (mode switched, breaker closed)."""
        if self.ports.lineage.watched_since() is None:
            self.ports.lineage.watch_from(now_micros())
        self.recall()
        self._read_at = now_micros()
        self._state = BreakerState(self.journal.breakers())
        self._show()
        if self.observe or self._state.opened:
            return []
        return [finding_wake(finding) for finding in self.open_findings.held()]

    def recall(self) -> None:
        """Read the open findings anew: a batch that failed told nothing of its work."""
        self.open_findings = OpenFindings()
        for finding in self.journal.open_findings(self.family):
            self.open_findings.keep(finding)
        newest = self.bookmarks.newest(self.stream)
        now = now_micros()
        told = now - EXPIRIES_KEPT if newest is None else newest.recorded_at - HOUR
        self._expired_up_to = min(told, now - HOUR)

    def marks_begin(self) -> Micros:
        """From when on marks of tallies may not have been gone through: all that are kept."""
        return now_micros() - MARKS_KEPT_DAYS * 24 * HOUR

    def admit(self, look: BatchLook, now: Micros) -> Admission:
        """Count this batch's suspects and say what may be repaired.

        Raises `AlreadyRunning` when the lease is lost: this process may not write any more.
        """
        self.check_lease()
        count = count_of(look.suspects, self.family.listing.name, look.examined, now)
        before = self._state
        after = after_batch(before, count, self.rates.limits)
        for breaker in after.opened.keys() - before.opened.keys():
            reason = after.opened[breaker]
            self.journal.open_breaker(breaker, reason, now)
            told = "breaker %s opened: %s; repairs pause until `reconcile resume`"
            log.error(told, breaker.value, reason)
        self._state = after  # only now: what the journal does not hold would look closed
        trouble = self.clock_trouble or self._fast_writers(look)
        return Admission(
            repairs=trouble or self._reason(Breaker.REPAIRS),
            removals=self._reason(Breaker.REMOVALS),
            observe=self.observe,
        )

    def _fast_writers(self, look: BatchLook) -> str | None:
        """Writers whose clocks run ahead by more than D/2, unless it is a stray key."""
        if look.fast_writers < max(FEW_KEYS, look.examined // 100):
            return None
        return f"{look.fast_writers} keys were written by clocks ahead by more than half the delay"

    def _reason(self, breaker: Breaker) -> str | None:
        reason = self._state.opened.get(breaker)
        return None if reason is None else f"breaker {breaker.value}: {reason}"

    def later_looks(self, now: Micros) -> list[Wake]:
        """Keys to look at again now: those due, those a person let go, those with expired cells."""
        return [*self._resumed(), *self._due(now), *self._expired(now)]

    def _expired(self, now: Micros) -> Iterator[Wake]:
        """After a restart once more those of the last hour: the batch may not have come so far."""
        self._expired_up_to = min(self._expired_up_to, now)  # the clock may have stepped back
        for expiry in self.ports.expiries.between(self._expired_up_to, now):
            yield scheduled_wake(expiry)
        self._expired_up_to = now

    def _resumed(self) -> list[Wake]:
        """The held keys to look at, if somebody has closed the breakers; else none."""
        opened = self.journal.breakers()
        if not self._state.opened or opened:
            return []
        self._state = BreakerState()
        log.info("breakers closed: looking again at what was held")
        return [finding_wake(finding) for finding in self.open_findings.held()]

    def _due(self, now: Micros) -> list[Wake]:
        """Keys whose next look has come; they are not due again until it must have happened."""
        due = list(self.open_findings.due(now))
        for finding in due:
            later = now + max(self.rates.recheck_interval, 4 * self.rates.delay)
            self.open_findings.keep(replace(finding, next_look=later))
        return [finding_wake(finding) for finding in due]

    def check_lease(self) -> None:
        """Raises `AlreadyRunning` when another live stream may hold the lease by now."""
        if self.lease is not None and not self.lease.holds():
            self.lease.acquire()

    def recent_bookmarks(self) -> list[Bookmark]:
        """Where a fresh checkpoint may begin."""
        return self.bookmarks.recent(self.stream)

    def events_lost(self) -> None:
        """Events are known to be lost: what was remembered as complete no longer is."""
        self.ports.lineage.watch_from(now_micros())

    def ended(self, look: BatchLook, batch: BatchPlace) -> None:
        """The batch is done: its bookmark, the consumer group's offsets, its metrics."""
        plan = batch.plan
        self.bookmarks.record(
            Bookmark(
                self.stream,
                batch.checkpoint,
                batch.batch_id,
                plan.batch_time,
                plan.watermark,
                batch.start,
                plan.end,
            )
        )
        self.commit(plan.end)
        self.read_up_to = plan.end
        family = self.family.name
        self.metrics.examined.labels(family).inc(look.examined)
        self.metrics.unresolved.inc(look.unresolved)
        self.metrics.last_batch.labels(family).set_to_current_time()
        for reason, number in look.bad.items():
            self.metrics.dead_letters.labels(reason).inc(number)
        delay: Micros = 0
        if look.freshest is not None and look.freshest[0] > self._freshest:
            self._freshest, delay = look.freshest
            self.metrics.capture_delay.set(delay / 1e6)
        if self.tallies is not None:
            self.tallies(self._came(look, plan, delay))
        age = 0.0 if look.oldest is None else (now_micros() - look.oldest) / 1e6
        self.metrics.window_age.set(age)

    def _came(self, look: BatchLook, plan: Planned, captured_in: Micros) -> BatchSummary:
        """What a batch read had waited since the one before it at most: 2 L are for both."""
        listing = self.family.listing.name
        found = {slot.mailboxid for name, slot in self.open_findings.findings if name == listing}
        read_at = plan.batch_time * 1000
        waited, self._read_at = read_at - (self._read_at or read_at), read_at
        return BatchSummary(
            settled_up_to=plan.watermark * 1000 - self.rates.window,
            changes=look.changes,
            lag=max(round(self.lag * 1e6), captured_in, (captured_in + waited) // 2),
            paused_because=self.clock_trouble or self._reason(Breaker.REPAIRS),
            mailboxes_with_findings=frozenset(found),
        )

    def record_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        """Take in what became of the suspects: open findings, metrics, one sentence a finding.

        That a table refuses, or no longer does, several workers may have found out.
        """
        all_of_them = list(outcomes)
        for outcome in all_of_them:
            self._take(outcome)
        report_looks_again(outcome.reason for outcome in all_of_them)
        self._show()

    def _take(self, outcome: Outcome) -> None:
        finding = outcome.finding
        if finding is None:
            if outcome.action is Action.NOTHING:
                self.open_findings.forget(outcome.projection, outcome.slot)
            return
        if outcome.action is Action.CLOSE:
            told_already = outcome.slot == WHOLE_TABLE and self.open_findings.of(finding) is None
            self.open_findings.drop(finding)
            if outcome.ended is not None and not told_already:
                report_end(self.metrics, finding, outcome.ended)
            return
        before = self.open_findings.of(finding)
        self.open_findings.keep(finding)
        if before is not None and (before.state, before.kind) == (finding.state, finding.kind):
            return
        report_change(self.metrics, finding)
        if outcome.action is Action.REPAIR and finding.oldest is not None:
            self.metrics.time_to_repair.observe((outcome.at - finding.oldest) / 1e6)

    def _show(self) -> None:
        self.metrics.show_open(self.stream, self.open_findings.counts())
        for breaker in Breaker:
            self.metrics.breaker.labels(breaker.value).set(breaker in self._state.opened)
