"""Steps 3 to 7 on fakes for the family of rights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding
from reconcilers.words.model import KeyValue, Micros, Row, Slot, Suspect, Wake
from streaming.steps.look import Look, LookResult
from streaming.steps.looks import Looks
from streaming.steps.outcome import Outcome
from tests.builders.examining import examiner
from tests.builders.permits import permit
from tests.builders.rights import LISTING, RIGHTS
from tests.builders.rows import DELAY, LONG_AGO, NOW, SECOND
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.memory_tables import MemoryTables


@dataclass
class Ground:
    """Both sides, what is remembered of them, and what was published."""

    truths: dict[KeyValue, tuple[Row, ...]] = field(default_factory=dict)
    rows: dict[Slot, Row] = field(default_factory=dict)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    published: list[Wake] = field(default_factory=list)
    now: Micros = NOW
    family: Family = RIGHTS

    def __post_init__(self) -> None:
        self.journal = MemoryJournal(lambda: self.now, (self.family,))
        self.tables = MemoryTables(
            truths=self.truths, rows={LISTING.name: self.rows}, truth=self.family.truth
        )

    def look(self, *wakes: Wake) -> LookResult:
        (found,) = self.looks(wakes)
        return found

    def looks(self, wakes: Sequence[Wake]) -> list[LookResult]:
        look = Look(self.family, self.tables, self.lineage, LONG_AGO)
        return list(Looks(look).at(wakes, self.now))

    def settle(self, suspect: Suspect, after: Micros = DELAY + SECOND) -> list[Outcome]:
        self.now += after
        return examiner(
            *(self.family, self.family.listing, self.tables, self.lineage, self.journal),
            publish=self.published.extend,
            clock=lambda: self.now,
        ).examine([suspect], permit(), f"batch {self.now}")

    @property
    def finding(self) -> Finding:
        (finding,) = self.journal.open_findings(self.family)
        return finding
