"""Step 5, the reads: the current rows of suspects, and what lineage holds of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from checkpoints.lineage import Lineage
from reconcilers.declared.family import Family, Projection
from reconcilers.rows.confirm import Moment, once_heard
from reconcilers.rows.memory import NOTHING_REMEMBERED, Entry, Memory, memory_of, merged
from reconcilers.rows.seen import Seen, SlotRows, claimants, is_one_sided, seen_at
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import SECOND, KeyValue, Micros, Row, Slot, Suspect, Verdict, number_of
from streaming.steps.contents import Contents
from streaming.steps.ports import ConfirmTables


class Unreadable(Refused):
    """An index cannot be read. If the truth or the listing refuses, that is a plain `Refused`."""


@dataclass(frozen=True, slots=True)
class Confirmer:
    """Reads suspects of one projection again; ``delay`` is D (µs).

    ``contents`` decides the cases that only message content can settle; None: content is not read.
    """

    family: Family
    projection: Projection
    tables: ConfirmTables
    lineage: Lineage
    delay: Micros = 45 * SECOND
    contents: Contents | None = None

    def settle(self, seen: Seen, verdict: Verdict, moment: Moment) -> Verdict:
        """The verdict after content was read, if it matters; look again if events are pending."""
        if self.contents is not None:
            verdict = self.contents.settle(self.projection, seen, verdict)
        return once_heard(seen, verdict, moment)

    def read(self, suspects: Sequence[Suspect]) -> list[Seen]:
        """Each suspect's rows: the projection FIRST, then the truth, at serial consistency.

        In the other order, our repair would override a write that came between the reads. Raises
        `Unreadable` if an index refuses the read.
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
        found = [
            SlotRows(rows.get(each.slot), listed.get(each.slot), ids, _rows_of(ids, truths))
            for each, ids in zip(suspects, claims, strict=True)
        ]
        asked = zip(suspects, found, strict=True)
        one_sided = {
            suspect.slot: each.claimants
            for suspect, each in asked
            if is_one_sided(self.family, suspect.slot, each)
        }
        memories = self._memories(one_sided)
        seen = [
            seen_at(
                *(self.family, suspect, each),
                memories.get(suspect.slot, NOTHING_REMEMBERED),
                self.delay,
            )
            for suspect, each in zip(suspects, found, strict=True)
        ]
        return self._of_nobody(self._beside_others(seen))

    def _beside_others(self, seen: Sequence[Seen]) -> list[Seen]:
        """Add to each orphan the deleted sibling rows of its sources that the listing still has."""
        deleted = {
            each.slot: {other for other, ends in each.memory.sibling_deletes.items() if ends}
            for each in seen
            if each.actual is not None and not each.truths
        }
        if not (asked := set[Slot]().union(*deleted.values())):
            return list(seen)
        listed = self.tables.projection_rows(self.family.listing, asked).keys()
        return [
            replace(each, others_listed=frozenset(deleted.get(each.slot, set()) & listed))
            for each in seen
        ]

    def _of_nobody(self, seen: Sequence[Seen]) -> list[Seen]:
        """Mark rows that no source claims with whether a sweep has read the whole truth."""
        swept = not all(each.consulted for each in seen) and self._remembers_all()
        return [each if each.consulted else replace(each, swept=swept) for each in seen]

    def read_nothing(self) -> None:
        """Send the reads of `read` for keys that no row has. Raises as `read` does.

        If no row of an index can be read, that is `Unreadable`, whichever error the server returns.
        """
        if self.projection.is_index:
            try:
                self.tables.projection_with_times(self.projection, [self.family.nowhere])
            except (ReadFailed, Refused) as failed:
                raise Unreadable(str(failed)) from failed
        self.read([Suspect(self.family.nowhere, frozenset(), None, self.projection.name)])
        self.tables.truth_serially([self.family.truth.source.of_no_row])

    def _remembers_all(self) -> bool:
        """Whether a sweep has read the whole truth since every change is received."""
        watching = self.lineage.watching()
        return watching is not None and watching.believed(self.delay).swept_at is not None

    def _memories(self, asked: Mapping[Slot, frozenset[KeyValue]]) -> dict[Slot, Memory]:
        """For each slot, what lineage holds of these sources, in a few reads for all slots.

        Lineage is read only for slots where it decides.
        """
        if not asked:
            return {}
        entries = self.lineage.of_sources(
            sorted({s for ids in asked.values() for s in ids}, key=str)
        )
        groups: defaultdict[KeyValue, set[KeyValue]] = defaultdict(set)
        for slot, sources in asked.items():
            groups[slot.group] |= sources
        heard = self.lineage.truth_deletes_of(groups)
        rows = {
            slot: {source: _rows_in(slot, entries.get(source, ())) for source in sources}
            for slot, sources in asked.items()
        }
        every = (each for of in rows.values() for some in of.values() for each in some)
        listed = self.lineage.projection_deletes_of(set(every))
        watching = self.lineage.watching()
        believed = watching and watching.believed(self.delay)
        return {
            slot: merged(
                slot,
                [
                    memory_of(
                        slot,
                        source,
                        entries.get(source, []),
                        heard[source, slot.group],
                        {each: listed[each] for each in sorted(some)},
                        believed,
                    )
                    for source, some in of.items()
                ],
            )
            for slot, of in rows.items()
        }


def _rows_in(slot: Slot, entries: Iterable[Entry]) -> set[Slot]:
    """This row, and the source's other rows in its group."""
    return {entry.slot for entry in entries if entry.slot.group == slot.group} | {slot}


def _rows_of(
    sources: Iterable[KeyValue], truths: Mapping[KeyValue, tuple[Row, ...]]
) -> tuple[Row, ...]:
    in_order = sorted(sources, key=number_of)
    return tuple(row for source in in_order for row in truths.get(source, ()))
