"""Corrects a counter: count again, claim the round, write the journal, then send the delta once.

A delta leaves no trace and must not be sent twice. So each is sent under a round of its own, which
one lightweight transaction claims. A crash or a timeout after that costs K fresh looks only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeGuard
from uuid import UUID

from checkpoints.clock import to_seconds
from checkpoints.tallies import Rounds
from reconcilers.counters.correction_limit import NOT_AGREED, above_limit
from reconcilers.counters.drift import LIST_MAY_LACK_ROWS, correction, raising
from reconcilers.declared.tally import Sum, Sums, Tally
from reconcilers.declared.writes import AddToCounter
from reconcilers.limits.write_target import WriteTarget, correction_of
from reconcilers.rows.acceptance import NONE_ACCEPTED
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.refusal import OBSERVED
from reconcilers.words.errors import Deferred, Refused, Retryable, Soon
from reconcilers.words.model import Kind, Row, Slot
from reconcilers.words.waiting import Wait, Waiting
from streaming.counters.correction_breaker import CorrectionBreaker
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_findings import CounterFindings
from streaming.counters.counter_row import CounterRow
from streaming.counters.observe import observed
from streaming.counters.ports import AddTables

log = logging.getLogger("reconciler")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the looks have proven: the ``mailboxes``, the ``round``, and the error of each sum."""

    mailboxes: frozenset[UUID]
    round: int
    wrong: Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrector:
    """Corrects tallies. ``trouble`` returns why nothing may be corrected now (a node is away).

    ``breaker`` counts each correction before it is sent. ``pauses`` returns why a person has paused
    a write, at most a second old. ``steady`` is monotonic (s), also while the machine sleeps.
    """

    findings: CounterFindings
    tables: AddTables
    counting: MailboxCounter
    rounds: Rounds
    breaker: CorrectionBreaker
    trouble: Callable[[], Waiting | None]
    pauses: Callable[[WriteTarget], Waiting | None]
    steady: Callable[[], float]

    def correct(self, counter: CounterRow, looked: Conclusion, refused: Waiting | None) -> None:
        """Correct a counter by no more than is proven. Raises `Deferred` if it must wait."""
        self.may_correct(refused)
        held = self._held_by_a_person(counter.family, counter.tally, counter.key)
        if held is not None:
            raise Deferred(held)
        self.findings.read_again(counter)
        if self.findings.is_anothers(self.findings.open_at(counter)):
            return
        anew = partial(self.counting.anew, looked.mailboxes)
        last = observed(self.tables, counter, self.counting, looked.mailboxes, looked.round, anew)
        if last is None:
            raise Soon("it changes while it is counted")
        stored, drift = last.stored, last.off
        right = {each: stored[each] - drift[each] for each in stored}
        proven = correction(looked.wrong, drift)
        if not proven:
            return
        deltas = self._sure(looked.mailboxes, proven)
        if not deltas:
            self._supersede(counter, self._same(counter, proven, drift))
            self._hold_lowering(self._found(counter, stored, right, proven))
            return
        same = self._same(counter, deltas, drift)
        finding = self._found(counter, stored, right, deltas)
        if same is not None:
            finding = replace(finding, attempts=same.attempts)
        if self._waits_for_a_person(counter, finding, deltas, same):
            return
        self._admit(counter, looked)
        claimed = self.steady()
        if not self.rounds.claim(counter.tally.name, str(counter.key), looked.round):
            log.info("somebody else has corrected %s: looking again", counter)
            return
        self._supersede(counter, same)
        self._send(
            finding,
            AddToCounter(counter.tally, counter.slot, counter.key, looked.round + 1, deltas),
            claimed,
        )

    def _held_by_a_person(self, family: str, tally: Tally, key: UUID | str) -> Waiting | None:
        """Why a person holds this counter: by a hold, or (not in observe mode) a pause or pilot."""
        held = self.findings.on_hold(family, tally.name, Slot(key))
        if held is not None or self.findings.limits.observe:
            return held
        return self.pauses(correction_of(tally, key))

    def may_correct(self, refused: Waiting | None) -> None:
        """Raises `Deferred` if nothing may be corrected now."""
        why = refused or self.trouble() or self.breaker.why()
        if why is not None:
            raise Deferred(why)

    def _sure(self, mailboxes: Collection[UUID], proven: Sums) -> Sums:
        """The part of an error that holds even if the listing lacks rows."""
        raised = raising(proven)
        whole = raised == proven or self.counting.sides.are_whole(mailboxes)
        return proven if whole else raised

    def _hold_lowering(self, finding: Finding) -> None:
        """Hold a correction that lowers only: the listing may lack messages that are counted."""
        state = State.OBSERVED if self.findings.limits.observe else State.HELD
        self.findings.hold(replace(finding, state=state, waits=LIST_MAY_LACK_ROWS))

    def _admit(self, counter: CounterRow, looked: Conclusion) -> None:
        """Raises `Deferred` if the breaker of corrections holds it back."""
        name = f"{counter.tally.name} {counter.key} {looked.round + 1}"
        if self.findings.open_at(counter) is None:
            self.breaker.admit_new(name)
        else:
            self.breaker.admit_again(name)

    def _found(self, counter: CounterRow, stored: Sums, right: Sums, deltas: Sums) -> Finding:
        """A finding of this correction, not written yet."""
        told = ", ".join(f"{each} {stored[each]} should be {right[each]}" for each in deltas)
        finding = self.findings.made(
            counter,
            Kind.COUNTER_DRIFT,
            State.INTENDED,
            f"{counter}: {told}; adding {_said(deltas)}",
        )
        return replace(
            finding,
            before=Row({str(each): value for each, value in stored.items()}),
            truth=(Row({str(each): value for each, value in right.items()}),),
        )

    def _same(self, counter: CounterRow, deltas: Sums, drift: Sums) -> Finding | None:
        """The open finding, unless it corrected another error or its correction has held."""
        before = self.findings.open_at(counter)
        writes = before.writes if before is not None else ()
        tried = [each.deltas for each in writes if _is_to(each, counter.tally)]
        if before is None or not tried:
            return before
        return before if tried == [deltas] and not _has_held(before, deltas, drift) else None

    def _supersede(self, counter: CounterRow, same: Finding | None) -> None:
        """End the open finding if the error is another one."""
        before = self.findings.open_at(counter)
        if before is not None and same is None:
            self.findings.close(before, State.SUPERSEDED)

    def _waits_for_a_person(
        self, counter: CounterRow, finding: Finding, deltas: Sums, same: Finding | None
    ) -> bool:
        """Whether it is not sent: then the finding is written with the reason."""
        agreed = _agreed(same)
        too_large = above_limit(deltas, _shown(finding, deltas), self.findings.limits.most, agreed)
        if self.findings.limits.observe:
            finding = replace(finding, state=State.OBSERVED, waits=OBSERVED)
        elif finding.attempts >= self.findings.limits.attempts:
            finding = replace(
                finding,
                state=State.STUCK,
                writes=same.writes if same is not None else (),
                sentence=f"{finding.sentence}; {finding.attempts} such corrections did not hold:"
                " who else corrects it? then `reconcile findings --retry`",
            )
        elif too_large:
            told = " and ".join(
                f"{self.findings.limits.most.get(each, 0)} of {each}" for each in too_large
            )
            finding = replace(
                finding,
                kind=Kind.LARGE_CORRECTION,
                state=State.HELD,
                waits=Waiting(Wait.DECISION, f"a person decides on an error above {told}"),
            )
            if same is not None and same.accepted:  # for a smaller error, or for another
                self.findings.close(same, State.SUPERSEDED)
                finding = replace(finding, found_at=self.findings.clock(), accepted=NONE_ACCEPTED)
        else:
            return False
        self._supersede(counter, same)
        self.findings.hold(finding)
        return True

    def _send(self, finding: Finding, write: AddToCounter, claimed: float) -> None:
        """Write the journal, then send; not if others may have looked since the claim.

        Only a delta that the server acknowledged counts as an attempt.
        """
        intended = replace(
            finding,
            tried_at=self.findings.clock(),
            batch=f"round {write.round}",
            writes=(write,),
        )
        self.findings.put(intended)
        if self.steady() > claimed + to_seconds(self.findings.limits.prompt):
            log.warning("%s: this process was held up, it is not sent", intended.sentence)
            return
        paused = self._held_by_a_person(finding.family, write.tally, write.key)
        if paused is not None:
            self.findings.hold(replace(finding, state=State.HELD, waits=paused))
            return
        try:
            self.tables.add(write)
        except Refused as refused:
            self.findings.refused(intended, write.tally.table, refused)
        except Retryable as unknown:
            log.warning("%s: applied or not? (%s); looking again", intended.sentence, unknown)
        else:
            self.findings.touch(replace(intended, attempts=intended.attempts + 1))
            self.findings.took_a_write(intended)


def _has_held(tried: Finding, deltas: Sums, drift: Sums) -> bool:
    """Whether each sum is wrong by less than before the correction: the rest is another error.

    Always false for a stuck finding: somebody else writes that counter up and down.
    """
    if tried.state is State.STUCK or tried.before is None or not tried.truth:
        return False
    before = _shown(tried, deltas)
    return all(abs(drift[each]) < abs(before[each]) for each in deltas)


def _is_to(write: object, tally: Tally) -> TypeGuard[AddToCounter]:
    """Whether a write is a delta to the table that is kept now."""
    return isinstance(write, AddToCounter) and write.tally.table == tally.table


def _shown(finding: Finding, sums: Iterable[Sum]) -> Sums:
    """The error that a finding shows, stored minus right, for each of these sums that it shows."""
    error = finding.error
    return {each: error[each] for each in sums if each in error}


def _agreed(same: Finding | None) -> Sums:
    """The error that a person has last accepted for this finding."""
    given = max(same.accepted, key=lambda each: each.at, default=None) if same else None
    return NOT_AGREED if given is None else {Sum(name): off for name, off in given.reason.error}


def _said(deltas: Sums) -> str:
    return " and ".join(f"{value:+d} to {each}" for each, value in deltas.items())
