"""Step 5, the reads: suspects as they are now, with all that is remembered of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from checkpoints.lineage import Lineage
from reconcilers.errors import ReadFailed, Refused
from reconcilers.family import Family, Projection
from reconcilers.memory import NOTHING_REMEMBERED, Entry, Memory, memory_of, merged
from reconcilers.model import SECOND, KeyValue, Micros, Row, Slot, Suspect, Verdict, number_of
from reconcilers.seen import Seen, SlotRows, claimants, is_one_sided, seen_at
from streaming.steps.contents import Contents
from streaming.steps.ports import ConfirmTables


class Unreadable(Refused):
    """An index may not be read; without the truth and the listing nothing is judged."""


@dataclass(frozen=True, slots=True)
class Confirmer:
    """Reads suspects of one projection again; tolerance and delay (µs) are those of `Moment`.

    ``contents`` is asked where only the content of a source can settle it; None: it is not read.
    """

    family: Family
    projection: Projection
    tables: ConfirmTables
    lineage: Lineage
    delete_clock_tolerance: Micros = 10 * SECOND
    delay: Micros = 45 * SECOND
    contents: Contents | None = None

    def settle(self, seen: Seen, verdict: Verdict) -> Verdict:
        """The verdict on what was read, once content was asked for where that matters."""
        if self.contents is None:
            return verdict
        return self.contents.settle(self.projection, seen, verdict)

    def read(self, suspects: Sequence[Suspect]) -> list[Seen]:
        """Each suspect as it is now: projection FIRST, truth SECOND, at serial consistency.

        The other way round, a write that came between the reads would be overridden by ours.
        Raises `Unreadable` when an index refuses.
        """
        slots = [suspect.slot for suspect in suspects]
        try:
            rows = self.tables.projection_with_times(self.projection, slots)
        except Refused as refused:
            if not self.projection.is_index:
                raise
            raise Unreadable(str(refused)) from refused
        listed = rows
        if self.projection.is_index:
            listed = self.tables.projection_rows(self.family.listing, slots)
        remembered = self.lineage.of_slots(slots)
        claims = [
            claimants(
                self.family, suspect, listed.get(suspect.slot), remembered.get(suspect.slot, ())
            )
            for suspect in suspects
        ]
        truths = self.tables.truth_serially({each for ids in claims for each in ids})
        return [
            self._seen(
                suspect,
                SlotRows(
                    rows.get(suspect.slot),
                    listed.get(suspect.slot),
                    ids,
                    _rows_of(ids, truths),
                ),
            )
            for suspect, ids in zip(suspects, claims, strict=True)
        ]

    def read_nothing(self) -> None:
        """Read in the same way what no row has. Raises as `read` does.

        An index of which nothing can be read refuses, whatever the server calls it.
        """
        if self.projection.is_index:
            try:
                self.tables.projection_with_times(self.projection, [self.family.nowhere])
            except (ReadFailed, Refused) as failed:
                raise Unreadable(str(failed)) from failed
        self.read([Suspect(self.family.nowhere, frozenset(), None, self.projection.name)])
        self.tables.truth_serially([self.family.truth.source.of_no_row])

    def _seen(self, suspect: Suspect, rows: SlotRows) -> Seen:
        """Memory is asked only where it decides: it is several reads a source."""
        one_sided = is_one_sided(self.family, suspect.slot, rows)
        memory = self._memory(suspect.slot, rows.claimants) if one_sided else NOTHING_REMEMBERED
        seen = seen_at(self.family, suspect, rows, memory, self.delete_clock_tolerance)
        return seen if rows.claimants else replace(seen, swept=self._remembers_all())

    def _remembers_all(self) -> bool:
        """Whether a sweep has read the whole truth since every change is heard."""
        watching = self.lineage.watching()
        return watching is not None and watching.believed(self.delay).swept_at is not None

    def _memory(self, slot: Slot, sources: frozenset[KeyValue]) -> Memory:
        entries = self.lineage.of_sources(list(sources))
        watching = self.lineage.watching()
        believed = watching and watching.believed(self.delay)
        return merged(
            [
                memory_of(
                    slot,
                    each,
                    entries.get(each, []),
                    self.lineage.truth_deletes(each, slot.group),
                    self._projection_deletes(slot, entries.get(each, [])),
                    believed,
                )
                for each in sources
            ]
        )

    def _projection_deletes(
        self, slot: Slot, entries: Iterable[Entry]
    ) -> dict[Slot, frozenset[Micros]]:
        """Of this row and of the source's others in its group."""
        slots = {entry.slot for entry in entries if entry.slot.group == slot.group} | {slot}
        return {each: self.lineage.projection_deletes(each) for each in sorted(slots)}


def _rows_of(
    sources: Iterable[KeyValue], truths: Mapping[KeyValue, tuple[Row, ...]]
) -> tuple[Row, ...]:
    in_order = sorted(sources, key=number_of)
    return tuple(row for source in in_order for row in truths.get(source, ()))
