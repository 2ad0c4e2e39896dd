"""Correcting a counter: one more glance, claim the round, journal, then the delta, once.

Whether a delta was applied cannot be seen, nor can it be sent again: so each is sent under a round
of its own, which one lightweight transaction claims. Whatever happens after that (a crash, no
answer) costs K fresh looks and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

from checkpoints.journal import Journal
from checkpoints.tallies import Rounds
from reconcilers.drift import correction
from reconcilers.errors import Deferred, Refused, Retryable, Soon
from reconcilers.finding import Finding, State
from reconcilers.model import Kind, Micros, Row, Slot
from reconcilers.tally import Sums, Tally
from reconcilers.writes import AddToCounter
from streaming.parking import Parking
from streaming.tallies.counting import Counting
from streaming.tallies.subject import Subject

log = logging.getLogger("reconciler")


class AddTables(Protocol):
    """The counters; `streaming.tables.CounterTables` is the real one."""

    def stored(self, tally: Tally, key: UUID | str) -> Sums | None:
        """What a counter row holds, None when there is none."""

    def add(self, write: AddToCounter) -> None:
        """Send a claimed delta, once."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``attempts`` of the same correction, and how large a root's first may be without a person.

    ``observe``: nothing is corrected; ``again`` (µs): how long a refusing table is left alone;
    ``prompt`` (µs): how long after its claim a delta may be sent, less than any look takes.
    """

    attempts: int
    first: Sums
    again: Micros
    prompt: Micros
    observe: bool = False


@dataclass(frozen=True, slots=True)
class Looked:
    """What the looks have shown: of which mailboxes, in which round, wrong by how much."""

    mailboxes: frozenset[UUID]
    round: int
    wrong: Sums


@dataclass(slots=True)
class Correcting:
    """Corrections of one family's tallies, and their findings.

    ``trouble`` says why nobody may correct now (a node is away), ``told`` hears of each finding and
    how it ended.
    """

    tables: AddTables
    counting: Counting
    rounds: Rounds
    journal: Journal
    parking: dict[str, Parking]
    clock: Callable[[], Micros]
    limits: Limits
    trouble: Callable[[], str | None]
    told: Callable[[Finding, State | None], None]
    _open: dict[tuple[str, Slot], Finding] = field(default_factory=dict)

    # --- findings

    def recall(self, findings: Iterable[Finding]) -> None:
        """The open findings, as the journal has them: a person may have changed one."""
        self._open = {(each.projection, each.slot): each for each in findings}

    def open_at(self, subject: Subject) -> Finding | None:
        """The open finding of a subject."""
        return self._open.get((subject.tally.name, subject.slot))

    def settled(self, subject: Subject) -> None:
        """It is right: an open finding ends."""
        finding = self.open_at(subject)
        if finding is not None:
            self._close(finding, State.VERIFIED if finding.writes else State.HEALED)

    def gone(self, subject: Subject) -> None:
        """There is no such counter any more: an open finding ends, whatever was tried."""
        finding = self.open_at(subject)
        if finding is not None:
            self._close(finding, State.HEALED)

    def defer(self, subject: Subject, why: str) -> None:
        """It cannot be corrected now: held, with the reason; unless its table has one for all.

        What was tried, stuck ones too, and what waits for a person stands as it is.
        """
        if self.parking[subject.family].parked(subject.tally.name) is not None:
            return
        sentence = f"{subject} may be wrong; not corrected yet: {why}"
        before = self.open_at(subject)
        if before is None or not (before.writes or before.kind is Kind.LARGE_CORRECTION):
            self._hold(self._finding(subject, Kind.COUNTER_DRIFT, State.HELD, sentence))

    def _finding(self, subject: Subject, kind: Kind, state: State, sentence: str) -> Finding:
        before = self.open_at(subject)
        return Finding(
            family=subject.family,
            projection=subject.tally.name,
            slot=subject.slot,
            messageid=None if subject.root is None else str(subject.root),
            kind=kind,
            state=state,
            sentence=sentence,
            found_at=self.clock() if before is None else before.found_at,
            accepted=before is not None and before.accepted,
        )

    def _put(self, finding: Finding) -> None:
        self.journal.put(finding)
        self._open[finding.projection, finding.slot] = finding
        self.told(finding, None)

    def _hold(self, finding: Finding) -> None:
        """It waits: told once, and looked at again now and then, whatever changes there."""
        before = self._open.get((finding.projection, finding.slot))
        held = replace(finding, next_look=self.clock() + self.limits.again)
        if before is not None and (before.state, before.sentence) == (held.state, held.sentence):
            self._touch(held)
        else:
            self._put(held)

    def _touch(self, finding: Finding) -> None:
        self.journal.touch(finding)
        self._open[finding.projection, finding.slot] = finding

    def waits(self, subject: Subject) -> bool:
        """Whether it is to be left alone until its next look is due."""
        finding = self.open_at(subject)
        return finding is not None and finding.next_look is not None

    def _close(self, finding: Finding, end: State) -> None:
        self.journal.close(finding, end, self.clock())
        self._open.pop((finding.projection, finding.slot), None)
        self.told(finding, end)

    # --- a correction

    def waits_for_table(self, subject: Subject) -> bool:
        """Whether its table refuses writes, and was asked not long ago."""
        parked = self.parking[subject.family].parked(subject.tally.name)
        return parked is not None and self.clock() < parked.tried_at + self.limits.again

    def correct(self, subject: Subject, looked: Looked, refused: str | None) -> None:
        """Correct it by no more than is sure. Raises `Deferred` when it has to wait."""
        self.may_correct(refused)
        before = self.tables.stored(subject.tally, subject.key)
        right = self.counting.sums(looked.mailboxes)
        after = self.tables.stored(subject.tally, subject.key)
        if before != after:
            raise Soon("it changes while it is counted")
        if after is None and not subject.tally.creates:
            return
        stored = after or dict.fromkeys(subject.tally.cells, 0)
        deltas = correction(looked.wrong, {each: stored[each] - right[each] for each in stored})
        if not deltas:
            return
        finding = self._found(subject, stored, right, deltas)
        if self._waits_for_a_person(subject, looked, deltas, finding):
            return
        claimed = self.clock()
        if not self.rounds.claim(subject.tally.name, str(subject.key), looked.round):
            log.info("somebody else has corrected %s: looking again", subject)
            return
        self._supersede(subject, deltas)
        self._send(
            finding,
            AddToCounter(subject.tally, subject.slot, subject.key, looked.round + 1, deltas),
            claimed,
        )

    def may_correct(self, refused: str | None) -> None:
        """Raises `Deferred` when nothing may be corrected now."""
        why = refused or self.trouble()
        if why is not None:
            raise Deferred(why)

    def _found(self, subject: Subject, stored: Sums, right: Sums, deltas: Sums) -> Finding:
        """The finding of this correction, going on from one that tried the same."""
        before = self._same(subject, deltas)
        told = ", ".join(f"{each} {stored[each]} should be {right[each]}" for each in deltas)
        finding = self._finding(
            subject,
            Kind.COUNTER_DRIFT,
            State.INTENDED,
            f"{subject}: {told}; adding {_said(deltas)}",
        )
        return replace(
            finding,
            attempts=before.attempts if before is not None else 0,
            before=Row({subject.tally.cells[each].column: stored[each] for each in stored}),
            truth=(Row({str(each): value for each, value in right.items()}),),
        )

    def _same(self, subject: Subject, deltas: Sums) -> Finding | None:
        """The open finding, but for one that corrected another error."""
        before = self.open_at(subject)
        writes = before.writes if before is not None else ()
        tried = [each.deltas for each in writes if isinstance(each, AddToCounter)]
        return before if not tried or tried == [deltas] else None

    def _supersede(self, subject: Subject, deltas: Sums) -> None:
        """The open finding ends where another error is found."""
        before = self.open_at(subject)
        if before is not None and self._same(subject, deltas) is None:
            self._close(before, State.SUPERSEDED)

    def _waits_for_a_person(
        self, subject: Subject, looked: Looked, deltas: Sums, finding: Finding
    ) -> bool:
        """Where it is not sent, the finding says why."""
        same = self._same(subject, deltas)
        first = looked.round == 0 and subject.tally.of_users and not finding.accepted
        too_large = [each for each in deltas if abs(deltas[each]) > self.limits.first.get(each, 0)]
        if self.limits.observe:
            finding = replace(finding, state=State.OBSERVED)
        elif finding.attempts >= self.limits.attempts:
            finding = replace(
                finding,
                state=State.STUCK,
                writes=same.writes if same is not None else (),
                sentence=f"{finding.sentence}; {finding.attempts} such corrections did not hold:"
                " who else corrects it? then `reconcile findings --retry`",
            )
        elif first and too_large:
            finding = replace(
                finding,
                kind=Kind.LARGE_CORRECTION,
                state=State.HELD,
                sentence=f"{finding.sentence}; the first correction of this root, and a large one",
            )
        else:
            return False
        self._supersede(subject, deltas)
        self._hold(finding)
        return True

    def _send(self, finding: Finding, write: AddToCounter, claimed: Micros) -> None:
        """Write it down, then send it; but not so late that others may have looked by now."""
        intended = replace(
            finding,
            attempts=finding.attempts + 1,
            tried_at=self.clock(),
            batch=f"round {write.round}",
            writes=(write,),
        )
        self._put(intended)
        if self.clock() > claimed + self.limits.prompt:
            self._no_attempt(intended, "this process was held up, it is not sent")
            return
        parking = self.parking[intended.family]
        try:
            self.tables.add(write)
        except Refused as refused:
            parked = parking.park(intended, write.tally.table, refused)
            if parked is not None:
                self.told(parked, None)
            parking.give_up(intended)
            self._open.pop((intended.projection, intended.slot), None)
            return
        except Retryable as unknown:
            self._no_attempt(intended, f"applied or not? ({unknown})")
            return
        freed = parking.freed(intended.projection)
        if freed is not None:
            self.told(freed, State.HEALED)

    def _no_attempt(self, intended: Finding, why: str) -> None:
        log.warning("%s: %s; looking again", intended.sentence, why)
        self._touch(replace(intended, attempts=intended.attempts - 1))


def _said(deltas: Sums) -> str:
    return " and ".join(f"{value:+d} to {each}" for each, value in deltas.items())
