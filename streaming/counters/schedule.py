"""Looks at tallies, one counter at a time: glance, look, wait for changes in flight, correct.

A look proves something only together with the changes that were in flight when it was made. They
are released after it. A change released before is at least one delay old: its chunk is marked and
its counter written, unless a command on many messages still runs (`reconcilers.counters.late`). So
a look waits until the frontier (`reconcilers.capture.frontier`) has passed its end, and counts the
changes released until then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from checkpoints.clock import to_micros
from reconcilers.counters.drift import (
    Observation,
    interval_of,
    proven_drift,
    remembered,
    whole_count_is_due,
)
from reconcilers.counters.late import under_way
from reconcilers.counters.stillness import stillness_after
from reconcilers.declared.tally import Sums
from reconcilers.words.errors import Deferred, Soon, Unfinished
from reconcilers.words.model import Micros
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.correct import Conclusion, Corrector
from streaming.counters.counter_findings import CounterFindings
from streaming.counters.counter_row import CounterRow
from streaming.counters.look_rules import LookRules
from streaming.counters.mailbox_changes import NumberedChanges
from streaming.counters.observe import CounterObserver, WholeLook
from streaming.counters.pending_counter import PendingCounter, PendingCounters, WaitingLook

CHECK_EVERY: Micros = 60_000_000
"""How often (µs) a look that waits is checked for nodes or tables that are gone."""


@dataclass(slots=True)
class CounterScheduler:
    """The counters that are pending. Used by one thread.

    ``count`` counts looks, with a tally's name, their outcome and their number.
    """

    observer: CounterObserver
    findings: CounterFindings
    correcting: Corrector
    clock: Callable[[], Micros]
    rules: LookRules
    count: Callable[[str, str, int], None]
    _batch: BatchSummary = field(default_factory=BatchSummary)
    pending: PendingCounters = field(default_factory=PendingCounters)

    def __len__(self) -> int:
        """How many counters are pending."""
        return len(self.pending)

    def take(self, batch: BatchSummary) -> None:
        """Take in a batch: add its changes to the looks that wait.

        Changes released after the frontier has passed a look were not in flight during it.
        """
        before, self._batch = self._batch, batch
        self.observer.counting.open.take(batch.open_messages)
        changes = NumberedChanges.of(batch.changes)
        self.observer.recent.take(changes)
        self.observer.heard(batch.proven)
        looked = [each for each in self.pending.values() if each.mailboxes]
        changed = changes.among({one for each in looked for one in each.mailboxes})
        for each in looked:
            came = {one: changed[one] for one in each.mailboxes if one in changed}
            if came and each.still is not None:
                each.still = each.still.heard(sum(came.values()), self.clock())
            if each.counting is not None:
                each.counting.changes.update(came)
            look = each.waiting
            if look is None or look.marks.passed(before.proven):
                continue
            look.changes.update(came)
            if look.marks.passed(batch.proven):
                each.due = self.clock()

    def expect(self, counters: Iterable[CounterRow]) -> int:
        """Schedule counters at the end of the window; return how many were not pending."""
        due, before = self.clock() + self.rules.window, len(self.pending)
        for counter in counters:
            self.pending.add(counter, due)
        return len(self.pending) - before

    def changed(self, counters: Iterable[CounterRow]) -> None:
        """Schedule counters that may be wrong: now; one that James writes late, after its lag."""
        now = self.clock()
        for row in counters:
            pending, lag = self.pending.add(row, now), self.rules.lag(row.tally)
            if pending is not None and pending.still is None and lag:
                pending.due = max(pending.due, now + lag)

    def ready(self) -> list[PendingCounter]:
        """The counters that are due now: those with a waiting look first, then by time."""
        now = self.clock()
        ready = [each for each in self.pending.values() if each.due <= now]
        return sorted(ready, key=lambda each: (each.waiting is None, each.due))

    def put_off(self, pending: PendingCounter, by: Micros) -> None:
        """Let a counter wait for a time (µs) from now."""
        pending.due = self.clock() + by

    def work(self, pending: PendingCounter) -> None:
        """Take one step of one counter. Raises `Retryable` or `Refused` as its tables do."""
        look = pending.waiting
        if look is None:
            try:
                self._glance(pending)
            except Unfinished:
                self.put_off(pending, by=0)  # behind the others that are due
        elif self.observer.frontier.watched() != look.marks.watched:
            self._void(pending, "nodes changed")
        elif look.marks.passed(self._batch.proven):
            self._judge(pending, look)
        else:
            self.put_off(pending, by=max(self.rules.delay, CHECK_EVERY))

    # --- a look

    def _glance(self, pending: PendingCounter) -> None:
        """Look closely only at a counter that differs, has looks, or has an open finding."""
        counter, tally = pending.counter, pending.counter.tally
        mailboxes = self._mailboxes(pending)
        if not mailboxes:
            return
        stored = self.observer.tables.stored(tally, counter.key)
        if stored is None and not tally.may_create_row:
            self._gone(pending)
            return
        try:
            off = self.observer.glance(stored or dict.fromkeys(tally.cells, 0), mailboxes)
            if not any(off.values()) and not pending.looks and not self.findings.open_at(counter):
                self.count(tally.name, "agrees", 1)
                self._drop(pending)
                return
            unknown_for = self.observer.recent.unknown_for()
            if unknown_for:
                self.count(tally.name, "just started", 1)
                self.put_off(pending, to_micros(unknown_for))
                return
            self._look(pending, mailboxes)
        except Deferred as why:
            self._deferred(pending, why)

    def _look(self, pending: PendingCounter, mailboxes: frozenset[UUID]) -> None:
        """Make a look; the last of K counts everything. Raises `Deferred` if it may not correct."""
        if pending.mailboxes != mailboxes:
            pending.looks, pending.mailboxes = (), mailboxes
            pending.still, pending.counting = None, None
        past, changes = self.observer.recent.past(mailboxes), Counter[UUID]()
        if whole_count_is_due(pending.looks, self.rules.evidence):
            if not self._may_correct(pending):
                return
            observed, look = self._count_whole(pending)
            past, changes = look.past, look.changes
        else:
            observed = self.observer.by_chunks(pending.counter, mailboxes)
        if pending.counting is not None:
            return
        if observed is None:
            self._void(pending, "moved")
            return
        marks = self.observer.frontier.marks()  # read after all that the look has seen was written
        if marks is None:
            self._void(pending, "no canary")
            return
        pending.waiting = WaitingLook(observed, marks, past, changes)
        pending.still = stillness_after(observed, pending.still)
        self.put_off(pending, by=max(self.rules.delay, CHECK_EVERY))

    def _count_whole(self, pending: PendingCounter) -> tuple[Observation | None, WholeLook]:
        """Take a turn of the whole count; None with it while more is left, or if it is void."""
        look = pending.counting
        if look is None:
            look = self.observer.begin_whole(pending.counter, pending.mailboxes)
        pending.counting = look
        observed = self.observer.go_on(pending.counter, pending.mailboxes, look)
        if look.watched != self.observer.frontier.watched():
            pending.counting = None
            return None, look
        if observed is None and (look.recount.left or look.turns > 1):
            self.put_off(pending, by=0)
        else:
            pending.counting = None
        return observed, look

    def _mailboxes(self, pending: PendingCounter) -> frozenset[UUID]:
        """The mailboxes of a counter; empty if it is gone or in doubt, which is then handled."""
        try:
            mailboxes = self.observer.owners.mailboxes(pending.counter)
        except Deferred as why:
            if pending.in_doubt:  # a mailbox that is being created is in doubt for a moment
                self.findings.defer(pending.counter, why.waiting)
            pending.in_doubt = True
            self._void(pending, "in doubt")
            return frozenset()
        pending.in_doubt = False
        if not mailboxes:
            self._gone(pending)
        return mailboxes

    def _gone(self, pending: PendingCounter) -> None:
        self.findings.gone(pending.counter)
        self._drop(pending)

    def _void(self, pending: PendingCounter, why: str) -> None:
        self.count(pending.counter.tally.name, why, 1)
        pending.waiting = None
        pending.due = self.clock() + self.rules.delay

    def _drop(self, pending: PendingCounter) -> None:
        place = pending.counter.tally.name, pending.counter.key
        if place in self.pending:
            del self.pending[place]

    # --- judgement

    def _judge(self, pending: PendingCounter, look: WaitingLook) -> None:
        changes = under_way(look.past, look.changes)
        pending.waiting = None
        tally, at = pending.counter.tally, look.observation.at
        pending.due = max(at + self.rules.apart(tally), self.clock())
        lag, still, stood = self.rules.lag(tally), pending.still, True
        if lag and still is not None:
            stood, changes = still.lasts(at, lag), max(changes, still.changes_since(at - lag))
        shown = interval_of(look.observation, changes)
        kept = remembered(pending.looks, shown, self.rules.evidence)
        pending.looks = kept if stood else ()  # else updates may be queued in the event bus
        wrong = proven_drift(pending.looks, self.rules.evidence)
        if shown.agrees:
            self.count(tally.name, "agrees", 1)
            self.findings.close_as_right(pending.counter)
            self._drop(pending)
        elif not wrong:
            one_side = pending.looks and any(shown.bound.values())
            self.count(tally.name, "wrong" if one_side else "unsure", 1)
        else:
            self.count(tally.name, "wrong", 1)
            self._correct(pending, wrong)

    def _may_correct(self, pending: PendingCounter) -> bool:
        """Whether its table takes writes; raises `Deferred` for any other reason to wait.

        While the table refuses writes the counter has no finding: a mark keeps it over a restart.
        """
        refused_for = self.findings.waits_for_table(pending.counter)
        if refused_for:
            marked = dict.fromkeys(pending.mailboxes, ())
            self.observer.counting.tallies.mark(marked, self.clock())
            pending.due = self.clock() + refused_for
            return False
        self.observer.counting.open.check(pending.mailboxes)
        self.correcting.may_correct(self._batch.paused_because)
        return True

    def _correct(self, pending: PendingCounter, wrong: Sums) -> None:
        """Correct a counter. Whatever the outcome, only fresh looks count from then on."""
        looked = Conclusion(pending.mailboxes, pending.looks[-1].round, wrong)
        pending.looks = ()
        try:
            self.observer.owners.read_again(pending.counter)
            if self.observer.owners.mailboxes(pending.counter) != pending.mailboxes:
                raise Soon("its mailboxes have changed")
            if self._may_correct(pending):
                self.correcting.correct(pending.counter, looked, self._batch.paused_because)
                # by then a delta without an answer is applied or lost
                pending.due = self.clock() + self.rules.delay
        except Deferred as why:
            self._deferred(pending, why)
        if self.findings.waits(pending.counter):
            self._drop(pending)

    def _deferred(self, pending: PendingCounter, why: Deferred) -> None:
        self.count(pending.counter.tally.name, "deferred", 1)
        pending.looks, pending.counting = (), None
        pending.due = self.clock() + self.rules.delay
        if not isinstance(why, Soon):
            self.findings.defer(pending.counter, why.waiting)
        if self.findings.waits(pending.counter):
            self._drop(pending)
