"""James's tables in dictionaries, as `Look`, `Confirmer` and `Examiner` want them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.family import Projection
from reconcilers.model import Row, Slot
from reconcilers.writes import Write


@dataclass
class MemoryTables:
    """Rows as they were put there; ``scanned`` and ``applied`` tell what was asked of them.

    Writes are only taken down: a repair never holds here.
    """

    truths: dict[UUID, tuple[Row, ...]] = field(default_factory=dict)
    rows: dict[str, dict[Slot, Row]] = field(default_factory=dict)
    scanned: list[UUID] = field(default_factory=list)
    applied: list[Write] = field(default_factory=list)

    def truth_rows(self, messageids: Iterable[UUID]) -> dict[UUID, tuple[Row, ...]]:
        serially = self.truth_serially(messageids)
        return {each: tuple(Row(row.cells) for row in rows) for each, rows in serially.items()}

    def truth_serially(self, messageids: Iterable[UUID]) -> dict[UUID, tuple[Row, ...]]:
        return {each: self.truths[each] for each in messageids if each in self.truths}

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        found = self.projection_with_times(projection, slots)
        return {slot: Row(row.cells) for slot, row in found.items()}

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        rows = self.rows.get(projection.name, {})
        return {slot: rows[slot] for slot in slots if slot in rows}

    def mailbox_slots(
        self, projection: Projection, mailboxid: UUID
    ) -> Iterator[tuple[Slot, UUID | None]]:
        self.scanned.append(mailboxid)
        for slot, row in self.rows.get(projection.name, {}).items():
            if slot.mailboxid == mailboxid:
                yield slot, projection.message_of(row)

    def apply(self, writes: Sequence[Write]) -> None:
        self.applied.extend(writes)
