"""Open findings as the driver keeps them in memory: when each is due, how many of which kind.

The journal is the record; this is read from it at the start and follows the outcomes of each batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from reconcilers.finding import Finding, State
from reconcilers.model import Micros, Slot, Wake
from streaming.steps.parking import WHOLE_TABLE

WAIT_FOR_DECISION = frozenset({State.HELD, State.OBSERVED})


Place = tuple[str, Slot]


def place_of(finding: Finding) -> Place:
    """Its projection and slot: one finding is open there."""
    return finding.projection, finding.slot


@dataclass(slots=True)
class OpenFindings:
    """Open findings in memory: what is due to be looked at again, and how many of which kind."""

    findings: dict[Place, Finding] = field(default_factory=dict)

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

    def held(self) -> Iterator[Finding]:
        """Findings that wait for a breaker, or for repair mode."""
        for finding in self.findings.values():
            if finding.state in WAIT_FOR_DECISION and _is_of_a_row(finding):
                yield finding

    def counts(self) -> Counter[tuple[str, str, str]]:
        """Open findings by projection, kind and state."""
        return Counter(
            (finding.projection, finding.kind.value, finding.state.value)
            for finding in self.findings.values()
        )


def _is_of_a_row(finding: Finding) -> bool:
    """Whether there is a key to look at: the finding of a whole table has none."""
    return finding.slot != WHOLE_TABLE


def finding_wake(finding: Finding) -> Wake:
    """Its key, to be published and looked at again."""
    return Wake(
        mailboxid=finding.slot.mailboxid,
        messageid=None,
        uid=finding.slot.uid,
        oldest=finding.oldest,
        looked_again=True,
        projection=finding.projection,
    )
