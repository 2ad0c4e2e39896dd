"""Correcting a counter: one more count, claim the round, journal, then the delta, once.

Whether a delta was applied cannot be seen, nor can it be sent again: so each is sent under a round
of its own, which one lightweight transaction claims. Whatever happens after that (a crash, no
answer) costs K fresh looks and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from checkpoints.tallies import Rounds
from reconcilers.drift import correction
from reconcilers.errors import Deferred, Refused, Retryable, Soon
from reconcilers.finding import Finding, State
from reconcilers.model import Kind, Micros, Row
from reconcilers.tally import Sums
from reconcilers.writes import AddToCounter
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_findings import CorrectionLimits, CounterFindings
from streaming.counters.counter_row import CounterRow
from streaming.counters.ports import AddTables

log = logging.getLogger("reconciler")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the looks have shown: of which mailboxes, in which round, wrong by how much."""

    mailboxes: frozenset[UUID]
    round: int
    wrong: Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrector:
    """Corrections of tallies; ``trouble`` says why nobody may correct now (a node is away)."""

    findings: CounterFindings
    tables: AddTables
    counting: MailboxCounter
    rounds: Rounds
    clock: Callable[[], Micros]
    limits: CorrectionLimits
    trouble: Callable[[], str | None]

    def correct(self, counter: CounterRow, looked: Conclusion, refused: str | None) -> None:
        """Correct it by no more than is sure. Raises `Deferred` when it has to wait."""
        self.may_correct(refused)
        self.findings.read_again(counter)
        if self.findings.is_anothers(self.findings.open_at(counter)):
            return
        before = self.tables.stored(counter.tally, counter.key)
        right = self.counting.anew(looked.mailboxes)
        after = self.tables.stored(counter.tally, counter.key)
        if before != after:
            raise Soon("it changes while it is counted")
        if after is None and not counter.tally.may_create_row:
            return
        stored = after or dict.fromkeys(counter.tally.cells, 0)
        deltas = correction(looked.wrong, {each: stored[each] - right[each] for each in stored})
        if not deltas:
            return
        finding = self._found(counter, stored, right, deltas)
        if self._waits_for_a_person(counter, looked, deltas, finding):
            return
        claimed = self.clock()
        if not self.rounds.claim(counter.tally.name, str(counter.key), looked.round):
            log.info("somebody else has corrected %s: looking again", counter)
            return
        self._supersede(counter, deltas)
        self._send(
            finding,
            AddToCounter(counter.tally, counter.slot, counter.key, looked.round + 1, deltas),
            claimed,
        )

    def may_correct(self, refused: str | None) -> None:
        """Raises `Deferred` when nothing may be corrected now."""
        why = refused or self.trouble()
        if why is not None:
            raise Deferred(why)

    def _found(self, counter: CounterRow, stored: Sums, right: Sums, deltas: Sums) -> Finding:
        """The finding of this correction, going on from one that tried the same."""
        before = self._same(counter, deltas)
        told = ", ".join(f"{each} {stored[each]} should be {right[each]}" for each in deltas)
        finding = self.findings.made(
            counter,
            Kind.COUNTER_DRIFT,
            State.INTENDED,
            f"{counter}: {told}; adding {_said(deltas)}",
        )
        return replace(
            finding,
            attempts=before.attempts if before is not None else 0,
            before=Row({str(each): value for each, value in stored.items()}),
            truth=(Row({str(each): value for each, value in right.items()}),),
        )

    def _same(self, counter: CounterRow, deltas: Sums) -> Finding | None:
        """The open finding, but for one that corrected another error."""
        before = self.findings.open_at(counter)
        writes = before.writes if before is not None else ()
        tried = [each.deltas for each in writes if isinstance(each, AddToCounter)]
        return before if not tried or tried == [deltas] else None

    def _supersede(self, counter: CounterRow, deltas: Sums) -> None:
        """The open finding ends where another error is found."""
        before = self.findings.open_at(counter)
        if before is not None and self._same(counter, deltas) is None:
            self.findings.close(before, State.SUPERSEDED)

    def _waits_for_a_person(
        self, counter: CounterRow, looked: Conclusion, deltas: Sums, finding: Finding
    ) -> bool:
        """Where it is not sent, the finding says why."""
        same = self._same(counter, deltas)
        first = looked.round == 0 and counter.tally.per_quota_root and not finding.accepted
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
        self._supersede(counter, deltas)
        self.findings.hold(finding)
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
        self.findings.put(intended)
        if self.clock() > claimed + self.limits.prompt:
            self._no_attempt(intended, "this process was held up, it is not sent")
            return
        try:
            self.tables.add(write)
        except Refused as refused:
            self.findings.refused(intended, write.tally.table, refused)
        except Retryable as unknown:
            self._no_attempt(intended, f"applied or not? ({unknown})")
        else:
            self.findings.took_a_write(intended)

    def _no_attempt(self, intended: Finding, why: str) -> None:
        log.warning("%s: %s; looking again", intended.sentence, why)
        self.findings.touch(replace(intended, attempts=intended.attempts - 1))


def _said(deltas: Sums) -> str:
    return " and ".join(f"{value:+d} to {each}" for each, value in deltas.items())
