"""Writes down findings that are not repaired now, with the time of their next look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from checkpoints.clock import HOUR
from checkpoints.journal import Journal
from reconcilers.declared.family import Family, Projection
from reconcilers.rows.finding import Action, Finding, State
from reconcilers.rows.refusal import Refusal
from reconcilers.words.model import Kind, Micros, Report
from reconcilers.words.waiting import RULES, Wait
from streaming.steps.confirmed_suspect import ConfirmedSuspect
from streaming.steps.outcome import Outcome

LONGEST: Micros = 30 * 24 * HOUR
"""The longest time (µs) between two looks at a finding that only a person can end."""


@dataclass(frozen=True, slots=True)
class FindingRecorder:
    """Writes the findings of one projection; a waiting one is looked at after ``again`` (µs).

    A finding that waits for a person is next looked at after as long again as it has waited. Its
    own events wake it earlier, and findings without a decision cost less each day.
    """

    family: Family
    projection: Projection
    journal: Journal
    clock: Callable[[], Micros]
    again: Micros

    def close(self, case: ConfirmedSuspect, state: State) -> Outcome:
        """Close the open finding in this state."""
        assert case.previous is not None
        now = self.clock()
        self.journal.close(case.previous, state, now)
        return Outcome(case.slot, Action.CLOSE, case.previous, state, now)

    def keep(self, case: ConfirmedSuspect) -> Outcome:
        """Keep the open finding, with a new time for its next look."""
        assert case.previous is not None
        kept = replace(case.previous, next_look=self._later(case.previous))
        self.journal.touch(kept)
        return Outcome(case.slot, Action.KEEP, kept)

    def stick(self, case: ConfirmedSuspect) -> Outcome:
        """Mark the finding as stuck: its last attempt did not hold."""
        assert case.previous is not None
        sentence = (
            f"{case.previous.told}; {case.previous.attempts} repairs did not hold:"
            " look at it, then `reconcile findings --retry`"
        )
        next_look = self._later(case.previous)
        waits = case.previous.waits if case.previous.wait is Wait.ROW else None
        stuck = replace(
            case.previous, state=State.STUCK, sentence=sentence, next_look=next_look, waits=waits
        )
        self.journal.put(stuck)
        return Outcome(case.slot, Action.STICK, stuck)

    def report(self, case: ConfirmedSuspect, report: Report) -> Outcome:
        """Report a difference that is not ours to repair."""
        finding = case.finding(
            self.family, self.projection, report.kind, State.REPORTED, report.sentence
        )
        unresolved = report.kind is Kind.UNRESOLVED
        finding = replace(finding, next_look=None if unresolved else self._later(finding))
        self.journal.put(finding)
        return Outcome(case.slot, Action.REPORT, finding, at=self.clock())

    def hold(
        self,
        case: ConfirmedSuspect,
        refused: Refusal,
        sentence: str,
        again: Micros | None = None,
    ) -> Outcome:
        """Hold or observe a repair, for ``again`` (µs) if given. This costs no attempt."""
        kind, state, before = refused.kind, refused.state, case.previous
        finding = case.finding(self.family, self.projection, kind, state, sentence)
        finding = replace(case.as_tried_before(finding), waits=refused.waits)
        next_look: Micros | None = self.clock() + (self.again if again is None else again)
        if state is State.OBSERVED:
            next_look = self._later(finding)
        if finding.wait is not None and not RULES[finding.wait].is_looked_at:
            next_look = None
        finding = replace(finding, next_look=next_look)
        same = before is not None and (before.state, before.wait) == (state, finding.wait)
        (self.journal.touch if same else self.journal.put)(finding)
        return Outcome(case.slot, Action.KEEP, finding)

    def _later(self, finding: Finding) -> Micros:
        """The next look (µs). An unreadable row is looked at soon, because counters wait for it."""
        now = self.clock()
        if finding.kind is Kind.UNREADABLE:
            return now + self.again
        return now + max(self.again, min(now - finding.found_at, LONGEST))
