"""Open findings as the driver keeps them in memory: when each is due, how many of which kind.

The journal is the record; this is read from it at the start and follows the outcomes of each batch,
of which each that changes something is reported once: in the log, and by metrics.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

from checkpoints.clock import to_seconds
from checkpoints.journal import Journal
from reconcilers.absent import truth_lost_rows
from reconcilers.family import Family
from reconcilers.finding import Action, Finding, State
from reconcilers.hold import waits_for_release
from reconcilers.key import WHOLE_TABLE
from reconcilers.model import Kind, Micros, Slot, Suspect, Wake, look_again
from reconcilers.open_message import OpenMessage, open_message
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.report import count_change, report_change, report_end, report_looks_again
from streaming.pipeline.held_looks import HeldLooks, Place
from streaming.steps.outcome import Outcome
from streaming.steps.permit import ABOVE

WAIT_FOR_DECISION = frozenset({State.HELD, State.OBSERVED})


def place_of(finding: Finding) -> Place:
    """Its projection and slot: one finding is open there."""
    return finding.projection, finding.slot


@dataclass(slots=True)
class OpenFindings:
    """One family's open findings: what is due to be looked at again, and how many of which kind.

    ``stream`` names them among the metrics. A look that was asked for must have happened after
    ``asked_again_after`` (µs): until then it is not due again.
    """

    family: Family
    journal: Journal
    metrics: Metrics
    stream: str
    asked_again_after: Micros
    held_looks: HeldLooks
    findings: dict[Place, Finding] = field(default_factory=dict)

    def recall(self) -> None:
        """Read them anew from the journal."""
        self.findings = {}
        for finding in self.journal.open_findings(self.family):
            self.keep(finding)
        self._show()

    def keep(self, finding: Finding) -> None:
        """An open finding, new or changed. The rows stay in the journal."""
        self.findings[place_of(finding)] = finding.without_rows()

    def drop(self, finding: Finding) -> None:
        """It is closed."""
        self.findings.pop(place_of(finding), None)

    def forget(self, projection: str, slot: Slot) -> None:
        """No finding is open there (any more: an observer may have seen it heal)."""
        self.findings.pop((projection, slot), None)

    def of(self, finding: Finding) -> Finding | None:
        """What was known before of the same slot and projection."""
        return self.findings.get(place_of(finding))

    def due(self, now: Micros) -> Iterator[Finding]:
        """Findings whose next look has come."""
        for finding in self.findings.values():
            if finding.next_look is not None and finding.next_look <= now and _is_of_a_row(finding):
                yield finding

    def take_due(self, now: Micros) -> list[Finding]:
        """Findings whose next look has come; they are not due again until it must have happened.

        Those that are held come at a pace, also those that were let go.
        """
        due = list(self.due(now))
        self._asked(due, now)
        self.held_looks.add(each for each in due if _is_paced(each))
        return [*(each for each in due if not _is_paced(each)), *self.take_held(now)]

    def take_held(self, now: Micros) -> list[Finding]:
        """Those of the held findings that come back now."""
        paced = [self.findings[place] for place in self.held_looks.take(self._is_held)]
        self._asked([each for each in paced if each.next_look is not None], now)
        return paced

    def let_go(self, which: Callable[[Finding], bool] = lambda _: True) -> None:
        """Those of the held findings come back soon, whenever their next look is due."""
        self.held_looks.add(each for each in self.held() if which(each))

    def held(self) -> Iterator[Finding]:
        """Findings that wait for a breaker, a pause, or for repair mode; not for their release."""
        for finding in self.findings.values():
            waits = finding.state in WAIT_FOR_DECISION and not waits_for_release(finding.sentence)
            if waits and _is_of_a_row(finding):
                yield finding

    def _asked(self, findings: Iterable[Finding], now: Micros) -> None:
        for finding in findings:
            self.keep(replace(finding, next_look=now + self.asked_again_after))

    def _is_held(self, place: Place) -> bool:
        finding = self.findings.get(place)
        return finding is not None and finding.state in WAIT_FOR_DECISION

    def is_not_written(self, suspect: Suspect) -> bool:
        """Whether no repair of it was sent yet, and none let through, by a person or the breaker.

        What a look only verifies was written; what the ceiling holds was counted when it was found.
        """
        finding = self.findings.get((suspect.projection, suspect.slot))
        if finding is None:
            return True
        waits = finding.state in WAIT_FOR_DECISION and not finding.sentence.endswith(ABOVE)
        return waits and not finding.attempts and not finding.accepted

    def on_hold(self, suspects: Iterable[Suspect]) -> set[Place]:
        """Those of the places that a person has put on hold, read now. Raises `Retryable`."""
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
        whole = (self.findings.get((each, WHOLE_TABLE)) for each in self.family.names)
        return frozenset(
            each.projection for each in whole if each and each.kind is Kind.TABLE_REFUSES
        )

    def counts(self) -> Counter[tuple[str, str, str]]:
        """Open findings by projection, kind and state."""
        return Counter(
            (finding.projection, finding.kind.value, finding.state.value)
            for finding in self.findings.values()
        )

    def messages(self) -> dict[UUID, list[OpenMessage]]:
        """The messages with an open finding, by mailbox; findings of an index do not count."""
        found: dict[UUID, list[OpenMessage]] = defaultdict(list)
        listing = self.family.listing.name
        for (name, slot), finding in self.findings.items():
            message = open_message(finding) if name == listing and _is_of_a_row(finding) else None
            if message is not None and isinstance(slot.group, UUID):
                found[slot.group].append(message)
        return found

    def unreadable(self) -> frozenset[Slot]:
        """Where a finding tells that the server does not read it."""
        found = self.findings.values()
        return frozenset(each.slot for each in found if each.kind is Kind.UNREADABLE)

    # --- outcomes

    def record_outcomes(self, outcomes: Iterable[Outcome], absent: int, now: Micros) -> None:
        """Take in what became of the suspects, with one sentence a finding.

        That a table refuses, or no longer does, several workers may have found out. Of more rows
        than ``absent`` that the truth lost without a delete one finding tells. ``now`` is µs.
        """
        all_of_them = list(outcomes)
        for outcome in all_of_them:
            self._take(outcome)
        report_looks_again(outcome.reason for outcome in all_of_them)
        self._tell_of_absent(absent, now)
        self._show()

    @property
    def _of_lost_rows(self) -> Finding | None:
        """The one that tells of many rows that the truth has lost."""
        found = self.findings.get((self.family.listing.name, self.family.whole_group(None)))
        return found if found and found.kind is Kind.TRUTH_LOST_ROWS else None

    def _tell_of_absent(self, most: int, now: Micros) -> None:
        before = self._of_lost_rows
        found = truth_lost_rows(self.family, self.findings.values(), most, now)
        if found is None:
            if before is not None:
                self.journal.close(before, State.HEALED, now)
                self.drop(before)
                report_end(self.metrics, before, State.HEALED)
        elif before is None:
            self.journal.put(found)
            self.keep(found)
            report_change(self.metrics, found)
        elif found.sentence != before.sentence:
            changed = replace(found, found_at=before.found_at)
            self.journal.touch(changed)
            self.keep(changed)

    def _take(self, outcome: Outcome) -> None:
        finding = outcome.finding
        if finding is None:
            if outcome.action is Action.NOTHING:
                self.forget(outcome.projection, outcome.slot)
            return
        if outcome.action is Action.CLOSE:
            told_already = outcome.slot == WHOLE_TABLE and self.of(finding) is None
            self.drop(finding)
            if outcome.ended is not None and not told_already:
                report_end(self.metrics, finding, outcome.ended)
            return
        before = self.of(finding)
        self.keep(finding)
        if before is not None and (before.state, before.kind) == (finding.state, finding.kind):
            return
        if finding.kind is Kind.ABSENT_WITHOUT_DELETE and self._of_lost_rows is not None:
            count_change(self.metrics, finding)  # one sentence stands for all of them
        else:
            report_change(self.metrics, finding)
        if outcome.action is Action.REPAIR and finding.oldest is not None:
            self.metrics.time_to_repair.observe(to_seconds(outcome.at - finding.oldest))

    def _show(self) -> None:
        self.metrics.show_open(self.stream, self.counts())


def _is_of_a_row(finding: Finding) -> bool:
    """Whether there is a key to look at: what stands for a table, or for many rows, has none."""
    return finding.slot != WHOLE_TABLE and finding.kind is not Kind.SYSTEMATIC


def _is_paced(finding: Finding) -> bool:
    """Whether it comes back at a pace; what the ceiling holds has one of its own."""
    return finding.state in WAIT_FOR_DECISION and not finding.sentence.endswith(ABOVE)


def finding_wake(finding: Finding) -> Wake:
    """Its key, to be published and looked at again."""
    return look_again(finding.slot, finding.projection, oldest=finding.oldest)
