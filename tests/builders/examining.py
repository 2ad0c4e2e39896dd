"""Steps 5 to 7 in memory: an examiner, and one slot settled batch after batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from checkpoints.journal import Journal
from checkpoints.lineage import Lineage
from reconcilers.declared.family import Family, Projection
from reconcilers.limits.gate import Admission
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import Action, Attempts, Finding, State
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Suspect, Wake
from streaming.steps.confirm import Confirmer
from streaming.steps.contents import Contents
from streaming.steps.examine import Examiner, Rules
from streaming.steps.outcome import Outcome
from tests.builders.permits import permit
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MESSAGE_ID,
    NOW,
    PROJECTION,
    SECOND,
    SLOT,
)
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.memory_tables import MemoryTables

RULES = Rules(
    DELAY,
    heard_within=0,
    recheck_interval=3600 * SECOND,
    attempts=Attempts(3, apart=DELAY),
    empty_truth_min_rows=10,
)
OPEN = Admission()


def examiner(
    family: Family,
    projection: Projection,
    tables: MemoryTables,
    lineage: Lineage,
    journal: Journal,
    *,
    publish: Callable[[Iterable[Wake]], None],
    clock: Callable[[], Micros],
    contents: Contents | None = None,
) -> Examiner:
    """As each worker makes one for its share."""
    confirmer = Confirmer(family, projection, tables, lineage, DELAY, contents)
    return Examiner(projection, tables, confirmer, journal, publish, clock, RULES)


@dataclass
class Stream:
    """An examiner with everything around it in memory; each batch is a delay after the last.

    ``ended`` are the findings that were superseded in the last batch.
    """

    tables: MemoryTables = field(default_factory=MemoryTables)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    published: list[Wake] = field(default_factory=list)
    ended: list[State | None] = field(default_factory=list)
    now: Micros = NOW
    _batches: int = 0

    def __post_init__(self) -> None:
        self.journal = MemoryJournal(lambda: self.now)

    def settle(
        self,
        kind: Kind,
        admission: Admission = OPEN,
        sources: frozenset[KeyValue] = frozenset({MESSAGE_ID}),
    ) -> Outcome:
        """One batch with `SLOT` as its only suspect."""
        self._batches += 1
        self.now += DELAY + SECOND
        suspect = Suspect(SLOT, sources, kind, PROJECTION.name, LONG_AGO, suspected=kind)
        *ended, outcome = examiner(
            *(FAMILY, PROJECTION, self.tables, self.lineage, self.journal),
            publish=self.published.extend,
            clock=lambda: self.now,
        ).examine([suspect], permit(admission), f"batch {self._batches}")
        self.ended = [each.ended for each in ended]
        return outcome

    @property
    def finding(self) -> Finding | None:
        """The one that is open."""
        return self.journal.recall(FAMILY, PROJECTION.name, [SLOT]).get(SLOT)

    @property
    def open_finding(self) -> Finding:
        """The one that is open, of which there must be one."""
        finding = self.finding
        assert finding is not None
        return finding

    def accept(self) -> None:
        """A person lets the open finding be carried out."""
        assert self.journal.accept(accepted(self.open_finding, self.now))

    def logged(self) -> list[object]:
        """The states that the journal's log tells, oldest first."""
        return [line["state"] for line in self.journal.log_at(NOW)]


def stream(*, actual: Row | None = None, wanted: Row | None = None) -> Stream:
    """Of a slot that has these rows in the listing and in the truth."""
    tables = MemoryTables(
        truths={} if wanted is None else {MESSAGE_ID: (wanted,)},
        rows={} if actual is None else {PROJECTION.name: {SLOT: actual}},
    )
    return Stream(tables)


def kind_of(outcome: Outcome) -> Kind | None:
    """The class of its finding."""
    return outcome.finding.kind if outcome.finding is not None else None


def became(outcome: Outcome) -> tuple[Action, Kind | None]:
    """What was done, and the class of its finding."""
    return outcome.action, kind_of(outcome)
