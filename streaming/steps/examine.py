"""Steps 5 to 7 for the suspects of some mailboxes: confirm, repair, schedule the next look.

Runs in the driver or on executors, over ports. The order is the guard. The projection is read
before the truth, and the journal is written before the table. A write counts as a repair only after
a later look has found it in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from checkpoints.journal import Journal
from reconcilers.declared.family import Family, Projection
from reconcilers.rows.confirm import Moment, cannot_be_found, cannot_be_read, judge, names_no_source
from reconcilers.rows.finding import Action, Attempts, State, Step, advance
from reconcilers.rows.halves import in_halves
from reconcilers.rows.plan import plan
from reconcilers.rows.refusal import Refusal, refusal
from reconcilers.rows.seen import Seen, wakes_of
from reconcilers.words.errors import ReadFailed
from reconcilers.words.model import (
    Consistent,
    Kind,
    Micros,
    Repair,
    Report,
    Slot,
    Suspect,
    Verdict,
    Wake,
    kind_found,
)
from reconcilers.words.waiting import Waiting
from streaming.steps.accepted_together import AcceptedTogether
from streaming.steps.confirm import Confirmer, Unreadable
from streaming.steps.confirmed_suspect import ConfirmedSuspect, with_sources
from streaming.steps.outcome import Outcome
from streaming.steps.own_deletes import RememberedWrites
from streaming.steps.parking import Parking
from streaming.steps.permit import ABOVE, Permit
from streaming.steps.ports import RepairTables
from streaming.steps.recorder import FindingRecorder
from streaming.steps.removals import Removals, may_be_unread
from streaming.steps.repair import Repairer, in_turn


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of steps 5 to 7; durations in µs. See `Moment`."""

    delay: Micros
    heard_within: Micros  # the assumed age of the frontier if the admission has none
    recheck_interval: Micros
    attempts: Attempts
    empty_truth_min_rows: int
    always_accepted: frozenset[Kind] = frozenset()


@dataclass(frozen=True, slots=True)
class _Batch:
    """The state of one batch: each mailbox is judged once, a parked table is tried once."""

    permit: Permit
    removals: Removals
    repairs: Repairer
    record: FindingRecorder


@dataclass(frozen=True, slots=True)
class Examiner:
    """Examines one projection's suspects; ``publish`` sends keys to the suspects topic (step 7).

    ``together`` holds what was accepted for many rows at once; it is None for an index.
    """

    projection: Projection
    tables: RepairTables
    confirmation: Confirmer
    journal: Journal
    publish: Callable[[Iterable[Wake]], None]
    clock: Callable[[], Micros]
    rules: Rules
    together: AcceptedTogether | None = None

    @property
    def family(self) -> Family:
        """The family of its projection."""
        return self.confirmation.family

    def examine(self, suspects: Sequence[Suspect], permit: Permit, batch: str) -> list[Outcome]:
        """Confirm each suspect and act. ``batch`` names the batch, the same when it is repeated.

        Raises `reconcilers.words.errors.Retryable` if a server fails. The batch is then repeated,
        and writes that were already sent are recognised.
        """
        if not suspects:
            return []
        this = self._batch(permit)
        waiting = this.repairs.rotated(suspects, batch)
        outcomes: list[Outcome] = []
        tries = int(this.repairs.refuses_writes)
        while waiting:
            parked = not permit.admission.observe and this.repairs.refuses_writes
            some, waiting, later = in_turn(waiting, tries if parked else None)
            tries = 0
            outcomes += this.repairs.later(later)
            try:
                outcomes += self._examine_some(some, this, batch)
            except Unreadable as refused:
                return [*outcomes, *this.repairs.unreadable([*some, *waiting], refused)]
        return outcomes

    def _examine_some(self, suspects: Sequence[Suspect], this: _Batch, batch: str) -> list[Outcome]:
        """Examine suspects under one C. Raises `Unreadable` before anything is written."""
        if not suspects:
            return []
        began, withdrawn = self.clock(), this.permit.withdrawn()
        if withdrawn is not None:  # C may be wrong, or a stop is pending
            self.publish([w for each in suspects for w in wakes_of(self.family, each, each.kind)])
            return [self._comes_back(each.slot, withdrawn) for each in suspects]
        cases = self.confirmed(suspects, began, batch, this.permit.admission.frontier)
        outcomes = list(this.repairs.readable())
        for case in cases:
            try:
                outcomes += self._examine_one(case, this)
            except ReadFailed as failed:  # a read of the whole mailbox, before a removal
                outcomes += self._examine_one(case.unreadable(str(failed)), this)
        return outcomes

    def _batch(self, permit: Permit) -> _Batch:
        rules, projection, again = self.rules, self.projection, self.rules.recheck_interval
        removals = Removals(self.family, projection, self.tables, rules.empty_truth_min_rows)
        repairs = Repairer(
            projection=projection,
            tables=RememberedWrites(self.tables, self.confirmation.lineage, self.clock),
            journal=self.journal,
            parking=Parking(self.family, self.journal, self.clock),
            publish=self.publish,
            clock=self.clock,
            recheck_interval=again,
        )
        record = FindingRecorder(self.family, projection, self.journal, self.clock, again)
        return _Batch(permit, removals, repairs, record)

    def confirmed(
        self,
        suspects: Sequence[Suspect],
        began: Micros,
        batch: str,
        frontier: Micros | None = None,
    ) -> list[ConfirmedSuspect]:
        """Each suspect's current rows and open finding. Only reads. Raises `Unreadable`."""
        rules = self.rules
        heard = began - rules.heard_within if frontier is None else frontier
        moment = Moment(began, rules.delay, heard)
        slots, name = [suspect.slot for suspect in suspects], self.projection.name
        open_ones = self.journal.recall(self.family, name, slots)
        if not self.family.remembered:  # else lineage names them
            suspects = [with_sources(self.family, each, open_ones) for each in suspects]
        wanted = [suspect for suspect in suspects if suspect.unreadable is None]
        read = in_halves(wanted, self.confirmation.read, self.confirmation.read_nothing)
        seen = {each.slot: each for some in read.answers for each in some}
        why = {suspect.slot: reason for suspect, reason in read.unreadable}
        holds = self.journal.holds.standing(self.family, name, slots)
        cases = [
            ConfirmedSuspect(
                suspect,
                seen.get(suspect.slot) or Seen(suspect.slot, None, (), consulted=suspect.sources),
                open_ones.get(suspect.slot),
                moment,
                batch,
                holds.get(suspect.slot),
            )
            for suspect in suspects
        ]
        return [case.unreadable(why[case.slot]) if case.slot in why else case for case in cases]

    # --- steps 6 and 7

    def _examine_one(self, case: ConfirmedSuspect, batch: _Batch) -> Iterator[Outcome]:
        verdict = self.verdict(case)
        previous = case.previous
        intended = previous is not None and previous.state is State.INTENDED
        if batch.permit.admission.observe and intended:
            yield Outcome(case.slot, Action.NOTHING, None)  # it belongs to the stream that repairs
            return
        step = advance(previous, verdict, case.seen, case.now, self.rules.attempts)
        if step.ends_as is not None:
            yield batch.record.close(case, step.ends_as)
            case = replace(case, previous=None)
        if step.ends_as is State.SUPERSEDED:  # judged again without what was accepted for it
            yield from self._examine_one(case, batch)
        elif step.action is not Action.CLOSE:
            yield from self._act(case, verdict, step, batch)

    def _act(
        self, case: ConfirmedSuspect, verdict: Verdict, step: Step, batch: _Batch
    ) -> Iterator[Outcome]:
        match step.action, verdict:
            case Action.KEEP, _:
                yield batch.record.keep(case)
            case Action.STICK, _:
                yield batch.record.stick(case)
            case Action.REPORT, Report():
                yield batch.record.report(case, verdict)
            case Action.REPAIR, Repair():
                yield from self._repair(case, verdict, step, batch)
            case Action.LOOK_AGAIN, _:
                self.publish(case.wakes(self.family, kind_found(verdict)))
                yield self._comes_back(case.slot, step.reason)
            case action, _:
                yield Outcome(case.slot, action, None, projection=self.projection.name)

    def _comes_back(self, slot: Slot, reason: str) -> Outcome:
        """The outcome for a slot whose key was published again."""
        return Outcome(slot, Action.LOOK_AGAIN, None, None, 0, self.projection.name, reason)

    def verdict(self, case: ConfirmedSuspect) -> Verdict:
        """The verdict, before limits and pauses apply. Nothing is written."""
        seen = case.seen
        if case.suspect.unreadable is not None:
            return cannot_be_read(self.family, self.projection, case.slot, case.suspect.unreadable)
        if case.suspect.kind is Kind.UNRESOLVED and seen.actual is None and not seen.consulted:
            return Consistent() if seen.swept else cannot_be_found(self.family)
        accepted = self.rules.always_accepted | case.decided
        verdict = judge(self.family, self.projection, seen, case.moment, accepted)
        if self.together and (more := self.together.kinds(seen, verdict, self.rules.delay)):
            verdict = judge(self.family, self.projection, seen, case.moment, accepted | more)
        of_nobody = isinstance(verdict, Repair) and not seen.consulted
        if of_nobody and may_be_unread(self.journal, self.family, case.slot):
            return names_no_source(self.family)
        return self.confirmation.settle(seen, verdict, case.moment)

    def _repair(
        self, case: ConfirmedSuspect, verdict: Repair, step: Step, batch: _Batch
    ) -> Iterator[Outcome]:
        refused = refusal(
            verdict,
            self.family,
            self.projection,
            case.admitted(batch.permit.admits(self.projection, verdict.difference.kind, case.slot)),
            lambda: self._may_remove(case, batch.removals),
        )
        if refused is None:
            yield from self._carry_out(case, verdict, step.attempt, batch)
            return
        if refused.state is State.REPORTED:
            report = Report(refused.kind, f"{verdict.sentence}; {refused.reason}")
            yield self._report_instead(case, report, batch)
        else:
            yield batch.record.hold(case, refused, verdict.sentence)

    def _carry_out(
        self, case: ConfirmedSuspect, verdict: Repair, attempt: int, batch: _Batch
    ) -> Iterator[Outcome]:
        kind, sentence = verdict.difference.kind, verdict.sentence
        planned = plan(self.projection, case.seen, verdict.difference, case.moment, attempt)
        if isinstance(planned, Report):
            report = replace(planned, sentence=f"{sentence}; {planned.sentence}")
            yield self._report_instead(case, report, batch)
            return
        withdrawn = batch.permit.withdrawn()
        if withdrawn is not None:
            self.publish(case.wakes(self.family, kind))
            yield self._comes_back(case.slot, withdrawn)
            return
        begun = case.is_begun and batch.permit.admission.again  # so it was admitted then
        wait = 0 if begun or batch.repairs.waits_for_table else batch.permit.wait()
        if wait:
            yield batch.record.hold(case, Refusal(State.HELD, kind, ABOVE), sentence, wait)
            return
        finding = replace(
            case.finding(self.family, self.projection, kind, State.INTENDED, sentence),
            attempts=attempt + 1,
            tried_at=case.moment.began,
            batch=case.batch,
            next_look=self.clock() + 4 * self.rules.delay,
        )
        stopped = partial(self._stopped, batch.permit, case.slot, kind)
        yield from batch.repairs.send(case, finding, planned, stopped)

    def _stopped(self, permit: Permit, slot: Slot, kind: Kind) -> Waiting | None:
        """Why a hold or a pause forbids this write; read last, right before the write."""
        found = self.journal.holds.standing(self.family, self.projection.name, [slot])
        return found[slot].waiting if found else permit.paused(self.projection, kind, slot)

    def _report_instead(self, case: ConfirmedSuspect, report: Report, batch: _Batch) -> Outcome:
        """Report what may not be repaired, or keep the finding if it says the same already."""
        step = advance(case.previous, report, case.seen, case.now, self.rules.attempts)
        if step.action is Action.KEEP:
            return batch.record.keep(case)
        return batch.record.report(case, report)

    def _may_remove(self, case: ConfirmedSuspect, removals: Removals) -> bool:
        kind = Kind.MAILBOX_WITHOUT_TRUTH
        together = self.together.at(case.seen, kind) if self.together else frozenset()
        return kind in case.decided | together or removals.may_lose_rows(case.slot.group)
