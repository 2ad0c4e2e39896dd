"""One projection's suspects settled batch after batch, where tables and the journal may refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.declared.family import Projection
from reconcilers.declared.writes import Write
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Refused, Unreachable
from reconcilers.words.key import WHOLE_TABLE, named
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Suspect, Value, Wake
from streaming.steps.examine import Examiner
from streaming.steps.outcome import Outcome
from tests.builders.examining import OPEN, examiner
from tests.builders.indexes import DELETED, INDEXED, LISTS
from tests.builders.permits import permit
from tests.builders.rows import DELAY, LONG_AGO, MAILBOX, NOW, SECOND, row, truth
from tests.builders.slots import mailbox_of, uid_of
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.memory_tables import PoisonedTables

SLOTS = tuple(Slot(MAILBOX, uid) for uid in range(1, 8))
GRANTED: frozenset[str] = frozenset()


def message_at(slot: Slot) -> UUID:
    return UUID(int=uid_of(slot) << 64 | 0x1000_8000_000000000000)


@dataclass
class Tables(PoisonedTables):
    """Takes writes, but for some tables, and for some rows of any; some cannot be read."""

    refusing: frozenset[str] = GRANTED
    unreadable: frozenset[str] = GRANTED
    poisoned: frozenset[Slot] = frozenset()
    asked: list[Slot] = field(default_factory=list)
    confirmed: list[KeyValue] = field(default_factory=list)
    """Of which messages the truth was read at serial consistency."""

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        if projection.table in self.unreadable:
            raise Refused(f"no SELECT permission on {projection.table}")
        return super().projection_with_times(projection, slots)

    def truth_serially(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        if INDEXED.truth.table in self.unreadable:
            raise Refused(f"no SELECT permission on {INDEXED.truth.table}")
        wanted = list(messageids)
        self.confirmed += wanted
        return super().truth_serially(wanted)

    def apply(self, writes: Sequence[Write]) -> None:
        (write,) = writes
        self.asked.append(write.slot)
        if write.projection.table in self.refusing:
            raise Refused(f"no MODIFY permission on {write.projection.table}")
        if write.slot in self.poisoned:
            raise Refused("too large")
        super().apply(writes)
        there = Row({"mailboxid": mailbox_of(write.slot), "uid": uid_of(write.slot)})
        self.rows.setdefault(write.projection.name, {})[write.slot] = there


@dataclass
class Flaky(MemoryJournal):
    """Cannot be reached when this comes to be asked of it, once."""

    clock: Callable[[], Micros]
    fails_at: Callable[[str, Finding], bool] | None = None

    def __post_init__(self) -> None:
        super().__init__(self.clock)

    def put(self, finding: Finding) -> None:
        self._fail("put", finding)
        super().put(finding)

    def close(self, finding: Finding, end: State, at: Micros) -> None:
        self._fail(f"close as {end}", finding)
        super().close(finding, end, at)

    def _fail(self, doing: str, finding: Finding) -> None:
        if self.fails_at is not None and self.fails_at(doing, finding):
            self.fails_at = None
            raise Unreachable(doing)


@dataclass
class Stream:
    """Messages that are marked and unseen, and missing in both indexes; batch after batch."""

    tables: Tables = field(default_factory=Tables)
    published: list[Wake] = field(default_factory=list)
    now: Micros = NOW
    batches: int = 0

    def __post_init__(self) -> None:
        self.journal = Flaky(lambda: self.now)
        for slot in SLOTS:
            cells: dict[str, Value] = {"uid": uid_of(slot), "messageid": message_at(slot)}
            cells |= {"flagdeleted": True, "flagseen": False}
            self.tables.truths[message_at(slot)] = (truth(cells),)
            self.tables.rows.setdefault(LISTS.name, {})[slot] = row(cells)

    def refuse(self, *projections: Projection) -> None:
        self.tables.refusing = frozenset(each.table for each in projections)

    def settle(
        self,
        slots: Iterable[Slot] = SLOTS,
        projection: Projection = DELETED,
        admission: Admission = OPEN,
    ) -> list[Outcome]:
        """The next batch, a delay after the last."""
        self.batches += 1
        self.now += DELAY + SECOND
        return self.execute(slots, projection, admission)

    def execute(
        self,
        slots: Iterable[Slot] = SLOTS,
        projection: Projection = DELETED,
        admission: Admission = OPEN,
        kind: Kind | None = Kind.MISSING_ROW,
    ) -> list[Outcome]:
        """The same batch, once more."""
        self.tables.asked.clear()
        self.published.clear()
        name = projection.name
        suspects = [
            Suspect(slot, frozenset({message_at(slot)}), kind, name, LONG_AGO, suspected=kind)
            for slot in slots
        ]
        return self._examiner(projection).examine(
            suspects, permit(admission), f"batch {self.batches}"
        )

    def _examiner(self, projection: Projection) -> Examiner:
        """As each worker makes one for its share."""
        return examiner(
            *(INDEXED, projection, self.tables, MemoryLineage(), self.journal),
            publish=self.published.extend,
            clock=lambda: self.now,
        )

    def open_ones(self) -> list[Finding]:
        return sorted(
            self.journal.open_findings(INDEXED), key=lambda each: (each.projection, each.slot)
        )

    def parked(self, projection: Projection = DELETED) -> Finding:
        """The only finding of a projection."""
        (found,) = [each for each in self.open_ones() if each.projection == projection.name]
        assert (found.slot, found.kind) == (WHOLE_TABLE, Kind.TABLE_REFUSES)
        return found

    def repaired(self, projection: Projection = DELETED) -> set[Slot]:
        return set(self.tables.rows.get(projection.name, {}))

    def logged(self, slot: Slot) -> list[object]:
        """The states that the journal's log tells of a slot, oldest first."""
        place = named(INDEXED.key, slot.key).items()
        return [each["state"] for each in self.journal.log_at(NOW) if place <= each.items()]
