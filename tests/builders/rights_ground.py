"""Steps 3 to 7 on fakes for a family, which is that of rights if no other is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from checkpoints.no_lineage import NoLineage
from reconcilers.declared.family import Family
from reconcilers.declared.writes import SetCells
from reconcilers.rows.finding import Finding
from reconcilers.words.model import KeyValue, Micros, Row, Slot, Suspect, Wake
from streaming.steps.contents import Contents
from streaming.steps.look import Look, LookResult
from streaming.steps.looks import Looks
from streaming.steps.outcome import Outcome
from tests.builders.examining import examiner
from tests.builders.permits import permit
from tests.builders.rights import RIGHTS
from tests.builders.rows import DELAY, LONG_AGO, NOW, SECOND
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.memory_tables import MemoryTables

MOST_LOOKS = 10


@dataclass
class Ground:
    """Both sides, what is remembered of them, and what was published."""

    truths: dict[KeyValue, tuple[Row, ...]] = field(default_factory=dict)
    rows: dict[Slot, Row] = field(default_factory=dict)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    published: list[Wake] = field(default_factory=list)
    now: Micros = NOW
    family: Family = RIGHTS
    existing: set[KeyValue] | None = None
    """The sources that have content or an owner; None: all."""
    owned: set[KeyValue] = field(default_factory=set)
    """The slots that a user owns, by their only part."""

    def __post_init__(self) -> None:
        self.kept = self.lineage if self.family.remembered else NoLineage()
        self.journal = MemoryJournal(lambda: self.now, (self.family,))
        self.tables = MemoryTables(
            truths=self.truths, rows={self.family.listing.name: self.rows}, truth=self.family.truth
        )

    def look(self, *wakes: Wake) -> LookResult:
        (found,) = self.looks(wakes)
        return found

    def looks(self, wakes: Sequence[Wake]) -> list[LookResult]:
        look = Look(self.family, self.tables, self.kept, LONG_AGO)
        return list(Looks(look).at(wakes, self.now))

    def settle(self, suspect: Suspect, after: Micros = DELAY + SECOND) -> list[Outcome]:
        self.now += after
        return examiner(
            *(self.family, self.family.listing, self.tables, self.kept, self.journal),
            contents=Contents(self.family, self.tables, self, DELAY),
            publish=self.published.extend,
            clock=lambda: self.now,
        ).examine([suspect], permit(), f"batch {self.now}")

    def having_content(self, sources: Sequence[KeyValue]) -> set[KeyValue]:
        return set(sources) if self.existing is None else self.existing & set(sources)

    having_owner = having_content

    def having_user(self, things: Sequence[KeyValue]) -> set[KeyValue]:
        return set(things) if self.family.truth.users is None else self.owned & set(things)

    def converge(self, *wakes: Wake) -> None:
        """Look, confirm and write until no key is published any more."""
        waiting = list(wakes)
        for _ in range(MOST_LOOKS):
            for suspect in (each for one in self.looks(waiting) for each in one.suspects):
                self.settle(suspect)
                self._carry_out()
            waiting, self.published[:] = list(self.published), []
            if not waiting:
                return
        raise AssertionError("it does not come to an end")

    def _carry_out(self) -> None:
        for write in self.tables.applied:
            row = self.rows.pop(write.slot, Row({}))
            if isinstance(write, SetCells):
                key = dict(zip(write.projection.key, write.slot.key, strict=True))
                times = dict.fromkeys(write.cells, write.at)
                cells = {**key, **row.cells, **write.cells}
                self.rows[write.slot] = Row(cells, {**row.written, **times})
        self.tables.applied.clear()

    @property
    def finding(self) -> Finding:
        (finding,) = self.journal.open_findings(self.family)
        return finding
