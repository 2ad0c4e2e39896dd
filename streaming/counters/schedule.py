"""Looks at tallies, one subject at a time: glance, look, wait for what is under way, correct.

A look is worth something only with the changes that may have been under way when it was made. All
of those come out of the settle window after it: what came out before is at least one delay old, so
its counter was written (L is no longer than the delay) and its chunk marked. So a look waits until
everything that was written by its end has come out, and counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from checkpoints.tallies import Rounds
from reconcilers.drift import (
    Evidence,
    Look,
    Measured,
    measured,
    remembered,
    suspected,
    wrong_by,
)
from reconcilers.errors import Deferred, Soon
from reconcilers.model import Micros
from reconcilers.tally import NOTHING, Sums, Tally
from streaming.counters.batch_summary import Came
from streaming.counters.correct import Correcting, Looked
from streaming.counters.count import Counting
from streaming.counters.counter_row import Owners, Subject

PATIENCE: Micros = 600_000_000
"""How long a look waits for the stream before it is void."""


@dataclass(frozen=True, slots=True)
class Timing:
    """When looks are made; µs.

    ``delay`` is D, ``window`` how long changes are gathered for one glance, ``latest`` is L: so
    long after the truth a counter is written, a change captured, its record read.
    """

    delay: Micros
    window: Micros
    latest: Micros


class StoredTables(Protocol):
    """The counters; `streaming.tables.CounterTables` is the real one."""

    def stored(self, tally: Tally, key: UUID | str) -> Sums | None:
        """What a counter row holds, None when there is none."""


@dataclass(slots=True)
class Watched:
    """A subject that is due at a time (µs); its looks so far, and the one that waits.

    That one is ``complete`` when what was read by then (µs) has come out.
    """

    subject: Subject
    due: Micros
    looks: tuple[Measured, ...] = ()
    waiting: Look | None = None
    complete: Micros = 0
    mailboxes: frozenset[UUID] = frozenset()
    changes: int = 0
    late: Micros = 0
    in_doubt: bool = False


@dataclass(slots=True)
class TallyWatch:
    """The subjects that are watched now. Used by one thread; ``count`` counts looks by outcome."""

    tables: StoredTables
    counting: Counting
    owners: Owners
    rounds: Rounds
    correcting: Correcting
    clock: Callable[[], Micros]
    timing: Timing
    evidence: Evidence
    count: Callable[[Tally, str], None]
    _came: Came = field(default_factory=Came)
    _watched: dict[tuple[str, UUID | str], Watched] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many subjects are due or waited for."""
        return len(self._watched)

    def take(self, came: Came) -> None:
        """Take in a batch: what it tells of the looks that wait.

        What comes out when a look is complete was not under way when it was made. A fresh
        checkpoint reads some changes once more: they come out later than a look waits.
        """
        before, self._came = self._came, came
        for each in self._watched.values():
            if each.waiting is None or before.settled >= each.complete:
                continue
            if came.settled < before.settled:
                self._void(each, "behind")
            else:
                each.changes += sum(came.changes.get(one, 0) for one in each.mailboxes)
                each.late = max(each.late, came.late)

    def expect(self, subjects: Iterable[Subject]) -> None:
        """These are due soon: what changes within the window makes one look."""
        due = self.clock() + self.timing.window
        for subject in subjects:
            self._watched.setdefault((subject.tally.name, subject.key), Watched(subject, due))

    def ready(self) -> list[Watched]:
        """The subjects to work on now: looks that are complete, then those due first."""
        now = self.clock()
        ready = [each for each in self._watched.values() if self._ready_at(each) <= now]
        return sorted(ready, key=lambda each: (each.waiting is None, each.due))

    def _ready_at(self, watched: Watched) -> Micros:
        if watched.waiting is None:
            return watched.due
        return watched.due if self._complete(watched) else watched.waiting.at + PATIENCE

    def _complete(self, watched: Watched) -> bool:
        return self._came.settled >= watched.complete

    def put_off(self, watched: Watched, by: Micros) -> None:
        """It could not be worked on: not before so long (µs)."""
        watched.due = self.clock() + by

    def work(self, watched: Watched) -> None:
        """One step of one subject. Raises `Retryable` when the surroundings fail."""
        if watched.waiting is None:
            self._glance(watched)
        else:
            self._judge(watched, watched.waiting)

    # --- a look

    def _glance(self, watched: Watched) -> None:
        """Only where the counter differs is it looked at more closely."""
        subject, tally = watched.subject, watched.subject.tally
        mailboxes = self._mailboxes(watched)
        if not mailboxes:
            return
        stored = self.tables.stored(tally, subject.key)
        if stored is None and not tally.creates:
            self._gone(watched)
            return
        expected = self.counting.sums(mailboxes)
        agrees = all(value == expected[each] for each, value in (stored or NOTHING).items())
        if agrees and not watched.looks and not self.correcting.open_at(subject):
            self.count(tally, "agrees")
            self._drop(watched)
            return
        try:
            self._look(watched, mailboxes)
        except Deferred as why:
            self._deferred(watched, why)

    def _look(self, watched: Watched, mailboxes: frozenset[UUID]) -> None:
        """The last one counts everything. Raises `Deferred` where that would be of no use."""
        subject, tally = watched.subject, watched.subject.tally
        if watched.mailboxes != mailboxes:
            watched.looks, watched.mailboxes = (), mailboxes
        whole = suspected(watched.looks, self.evidence)
        if whole and not self._may_correct(watched):
            return
        began = self.clock()
        round_ = self.rounds.current(tally.name, str(subject.key))  # before the counter is read
        before = self.tables.stored(tally, subject.key)
        expected = (self.counting.recounted if whole else self.counting.sums)(mailboxes)
        after = self.tables.stored(tally, subject.key)
        if before != after:
            self._void(watched, "moved")
            return
        stored = after or dict.fromkeys(tally.cells, 0)
        watched.waiting = Look(began, round_, stored, expected, whole)
        watched.changes, watched.late = 0, 0
        # what is written by now is captured within L, and read within another
        watched.complete = self.clock() + 2 * self.timing.latest

    def _mailboxes(self, watched: Watched) -> frozenset[UUID]:
        """Nothing to be looked at: of a subject that is gone, or in doubt."""
        try:
            mailboxes = self.owners.mailboxes(watched.subject)
        except Deferred as why:
            if watched.in_doubt:  # a mailbox that is being made is so for a moment
                self.correcting.defer(watched.subject, str(why))
            watched.in_doubt = True
            self._void(watched, "in doubt")
            return frozenset()
        watched.in_doubt = False
        if not mailboxes:
            self._gone(watched)
        return mailboxes

    def _gone(self, watched: Watched) -> None:
        self.correcting.gone(watched.subject)
        self._drop(watched)

    def _void(self, watched: Watched, why: str) -> None:
        self.count(watched.subject.tally, why)
        watched.waiting = None
        watched.due = self.clock() + self.timing.delay

    def _drop(self, watched: Watched) -> None:
        self._watched.pop((watched.subject.tally.name, watched.subject.key), None)

    # --- what it has shown

    def _judge(self, watched: Watched, look: Look) -> None:
        watched.waiting = None
        watched.due = max(look.at + self.timing.delay, self.clock())
        if watched.late > self.timing.latest or not self._complete(watched):
            self._void(watched, "behind")
            return
        shown = measured(look, watched.changes)
        watched.looks = remembered(watched.looks, shown, self.evidence)
        wrong = wrong_by(watched.looks, self.evidence)
        if shown.agrees:
            self.count(watched.subject.tally, "agrees")
            self.correcting.settled(watched.subject)
            self._drop(watched)
        elif not wrong:
            self.count(watched.subject.tally, "wrong" if any(shown.least.values()) else "unsure")
        else:
            self.count(watched.subject.tally, "wrong")
            self._correct(watched, wrong)

    def _may_correct(self, watched: Watched) -> bool:
        """Raises `Deferred` with the reason where it is not so.

        While its table refuses writes nothing is told of it; a mark brings it back after a restart.
        """
        if self.correcting.waits_for_table(watched.subject):
            self.counting.tallies.mark(dict.fromkeys(watched.mailboxes, ()), self.clock())
            watched.due = self.clock() + self.correcting.limits.again
            return False
        if watched.mailboxes & self._came.unsettled:
            raise Deferred("a message there has an open finding")
        self.correcting.may_correct(self._came.refused)
        return True

    def _correct(self, watched: Watched, wrong: Sums) -> None:
        """Whatever comes of it, only fresh looks count from now on."""
        looked = Looked(watched.mailboxes, watched.looks[-1].round, wrong)
        watched.looks = ()
        try:
            self.owners.read_again(watched.subject)
            if self.owners.mailboxes(watched.subject) != watched.mailboxes:
                raise Soon("its mailboxes have changed")
            if self._may_correct(watched):
                self.correcting.correct(watched.subject, looked, self._came.refused)
                # a delta without an answer is applied by then
                watched.due = self.clock() + self.timing.delay
        except Deferred as why:
            self._deferred(watched, why)
        if self.correcting.waits(watched.subject):
            self._drop(watched)

    def _deferred(self, watched: Watched, why: Deferred) -> None:
        self.count(watched.subject.tally, "deferred")
        watched.looks = ()
        watched.due = self.clock() + self.timing.delay
        if not isinstance(why, Soon):
            self.correcting.defer(watched.subject, str(why))
        if self.correcting.waits(watched.subject):
            self._drop(watched)
