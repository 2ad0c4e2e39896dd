"""The open findings in the driver's memory: when each is due, how many there are of each kind.

The journal is the record. This is read from it at the start, and follows the outcomes of each
batch. Each outcome that changes something is reported once, in the log and by metrics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from checkpoints.clock import to_seconds
from checkpoints.journal import Journal
from reconcilers.declared.family import Family
from reconcilers.limits.ceiling import MINUTE
from reconcilers.rows.finding import Action, Finding
from reconcilers.sweep.lost_rows import COVERED, place_of
from reconcilers.sweep.systematic import all_places
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros, ProjectionSlot, Slot, Suspect
from reconcilers.words.waiting import RULES, Wait
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.report import (
    report_change,
    report_end,
    report_looks_again,
    report_reason,
)
from streaming.pipeline.held_looks import HeldLooks
from streaming.pipeline.open_by_group import MessagesByGroup
from streaming.pipeline.open_finding import OpenFinding
from streaming.pipeline.open_index import OpenIndex
from streaming.steps.outcome import Outcome


@dataclass(slots=True)
class OpenFindings:
    """One family's open findings: which are due, how many there are of each kind.

    ``stream`` names them among the metrics. A published key must have been looked at after
    ``asked_again_after`` (µs); its finding is not due again before.
    """

    family: Family
    journal: Journal
    metrics: Metrics
    stream: str
    asked_again_after: Micros
    held_looks: HeldLooks
    index: OpenIndex = field(init=False)
    _told_at: Micros = 0

    def __post_init__(self) -> None:
        """Begin without any open finding."""
        self.index = OpenIndex(self.family)

    def recall(self) -> None:
        """Read the open findings again from the journal."""
        self.index = OpenIndex(self.family)
        self.index.fill(self.journal.open_findings(self.family))
        self._show()

    def recall_told(self, now: Micros) -> None:
        """Read a sweep's findings of many rows from the journal, once a minute (``now``: µs).

        A sweep may run in another process.
        """
        if abs(now - self._told_at) < MINUTE:
            return
        self._told_at, name = now, self.family.listing.name
        places = {place_of(self.family, each) for each in COVERED} | all_places(self.family)
        told = self.journal.recall(self.family, name, places)
        for place in places:
            if place in told:
                self.index.keep(told[place])
            else:
                self.index.drop(name, place)
        self._show()

    def of(self, finding: Finding) -> OpenFinding | None:
        """The open finding of the same slot and projection, or None."""
        return self.index.at(finding.projection, finding.slot)

    def take_due(self, now: Micros) -> list[OpenFinding]:
        """Findings whose next look is due; each is not due again for ``asked_again_after``.

        Held findings come at a pace, also those that were let go.
        """
        due = list(self.index.take_due(now))
        at_once = [each for each in due if not each.is_paced]
        self._asked(at_once, now)
        self.held_looks.add(each for each in due if each.is_paced)
        return [*at_once, *self.take_held(now)]

    def take_held(self, now: Micros) -> list[OpenFinding]:
        """Those of the queued held findings that come back now."""
        places = self.held_looks.take(self._is_held)
        paced = [found for place in places if (found := self.index.at(*place)) is not None]
        self._asked([each for each in paced if each.next_look is not None], now)
        return paced

    def let_go(self, only: Collection[Wait] = frozenset(Wait)) -> None:
        """Queue the held findings that wait for one of these, whenever their next look is due."""
        self.held_looks.add(each for each in self.held() if each.wait in only)

    def held(self) -> Iterator[OpenFinding]:
        """Findings of rows that wait and are looked at again; not those on hold."""
        return (
            each
            for each in self.index
            if each.wait is not None and RULES[each.wait].is_looked_at and each.is_of_a_row
        )

    def _asked(self, findings: Iterable[OpenFinding], now: Micros) -> None:
        for finding in findings:
            self.index.look_at(finding, now + self.asked_again_after)

    def _is_held(self, place: ProjectionSlot) -> bool:
        found = self.index.at(*place)
        return found is not None and found.wait is not None

    def is_not_written(self, suspect: Suspect) -> bool:
        """Whether no repair was sent yet, and neither a person nor a breaker has let one through.

        A look that verifies follows a repair; what the ceiling holds was counted when it was found.
        """
        found = self.index.at(suspect.projection, suspect.slot)
        return found is None or found.condition.unwritten

    def is_open(self, suspect: Suspect) -> bool:
        """Whether a finding is open at the suspect's slot."""
        return self.index.at(suspect.projection, suspect.slot) is not None

    def on_hold(self, suspects: Iterable[Suspect]) -> set[ProjectionSlot]:
        """The places of suspects that a person has put on hold, read now. Raises `Retryable`."""
        slots: dict[str, list[Slot]] = defaultdict(list)
        for each in suspects:
            if each.kind is not None:
                slots[each.projection].append(each.slot)
        standing = self.journal.holds.standing
        return {
            (name, slot)
            for name, some in slots.items()
            for slot in standing(self.family, name, some)
        }

    @property
    def refusing(self) -> frozenset[str]:
        """The projections whose table refuses writes."""
        whole = (self.index.at(each, WHOLE_TABLE) for each in self.family.names)
        return frozenset(
            each.projection for each in whole if each and each.kind is Kind.TABLE_REFUSES
        )

    def messages(self) -> MessagesByGroup:
        """Messages with an open finding, by mailbox; findings of an index do not count."""
        return self.index.messages()

    def unreadable(self) -> frozenset[Slot]:
        """The slots that the server cannot read, by their findings."""
        return frozenset(each.slot for each in self.index.of_kind(Kind.UNREADABLE))

    # --- outcomes

    def record_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        """Take in the outcomes of the suspects, and report each changed finding once.

        Several workers may report that a table refuses, or that it no longer does.
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
                self.index.drop(outcome.projection, outcome.slot)  # an observer saw it heal
            return
        if outcome.action is Action.CLOSE:
            told_already = outcome.slot == WHOLE_TABLE and self.of(finding) is None
            self.index.drop(finding.projection, finding.slot)
            if outcome.ended is not None and not told_already:
                report_end(self.metrics, finding, outcome.ended)
            return
        before = self.of(finding)
        self.index.keep(finding)
        if before is not None and (before.state, before.kind) == (finding.state, finding.kind):
            if before.wait is not finding.wait:
                report_reason(finding)
            return
        report_change(self.metrics, finding)
        if outcome.action is Action.REPAIR and finding.oldest is not None:
            self.metrics.time_to_repair.observe(to_seconds(outcome.at - finding.oldest))

    def _show(self) -> None:
        self.metrics.show_open(self.stream, self.index.counts)
        if any(each.grants_access for each in self.family.projections):
            self.metrics.stale_right.begin(self.family.name, self.index.excess_since())
