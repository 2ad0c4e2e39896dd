"""James's tables in dictionaries, as `Look`, `Confirmer` and `Examiner` want them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from reconcilers.declared.family import Projection
from reconcilers.declared.truth import TruthTable
from reconcilers.declared.truths import IMAP_UIDS
from reconcilers.declared.writes import Write
from reconcilers.words.errors import ReadFailed
from reconcilers.words.model import KeyValue, Row, Slot


@dataclass
class MemoryTables:
    """Rows as they were put there; ``scanned`` and ``applied`` tell what was asked of them.

    ``truths`` are the stored rows of each source; ``truth`` may derive others from them. Writes are
    only taken down: a repair never holds here.
    """

    truths: dict[KeyValue, tuple[Row, ...]] = field(default_factory=dict)
    rows: dict[str, dict[Slot, Row]] = field(default_factory=dict)
    scanned: list[KeyValue] = field(default_factory=list)
    applied: list[Write] = field(default_factory=list)
    truth: TruthTable = IMAP_UIDS

    def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        serially = self.truth_serially(messageids)
        return {each: tuple(Row(row.cells) for row in rows) for each, rows in serially.items()}

    def truth_serially(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        return self._truths(messageids)

    def truth_with_times(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        return self._truths(messageids)

    def _truths(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        stored = {each: self.truths[each] for each in messageids if each in self.truths}
        return self.truth.rows_of_each(stored)

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        found = self.projection_with_times(projection, slots)
        return {slot: Row(row.cells) for slot, row in found.items()}

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        rows = self.rows.get(projection.name, {})
        return {slot: rows[slot] for slot in slots if slot in rows}

    def slots_of_group(
        self, projection: Projection, group: KeyValue
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        self.scanned.append(group)
        for slot, row in self.rows.get(projection.name, {}).items():
            if slot.group == group:
                yield slot, projection.source_of(row)

    def some_slots(
        self, projection: Projection, group: KeyValue, most: int, first: KeyValue | None
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        rows = self.rows.get(projection.name, {})
        slots = sorted((slot for slot in rows if slot.group == group), key=lambda each: each.key)
        if first is None:
            slots = slots[-most:]
        else:
            slots = [slot for slot in slots if slot.key[1] >= first][:most]  # type: ignore[operator]
        yield from ((slot, projection.source_of(rows[slot])) for slot in slots)

    def apply(self, writes: Sequence[Write]) -> None:
        self.applied.extend(writes)


@dataclass
class PoisonedTables(MemoryTables):
    """The server fails to read the rows in ``bad``, or a mailbox as a whole."""

    bad: set[Slot] = field(default_factory=set)
    error: Exception = field(default_factory=lambda: ReadFailed("too many tombstones"))
    scan_fails: Exception | None = None

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        wanted = list(slots)
        if self.bad.intersection(wanted):
            raise self.error
        return super().projection_with_times(projection, wanted)

    def slots_of_group(
        self, projection: Projection, group: KeyValue
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        if self.scan_fails is not None:
            raise self.scan_fails
        yield from super().slots_of_group(projection, group)
