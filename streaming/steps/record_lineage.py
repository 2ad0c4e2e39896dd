"""What a look writes to lineage: the rows it read on both sides, and the deletes of its wakes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from checkpoints.lineage import Lineage, SourceInGroup
from reconcilers.declared.family import Family
from reconcilers.rows.deletes import ProjectionDelete, TruthDelete
from reconcilers.rows.memory import Entry
from reconcilers.rows.seen import is_incomplete
from reconcilers.words.model import EXPIRED, KeyValue, Micros, Slot, Wake
from streaming.steps.look_state import LookState


@dataclass(frozen=True, slots=True)
class LineageRecorder:
    """Writes the result of one look to lineage. ``watched_since`` is µs."""

    family: Family
    lineage: Lineage
    watched_since: Micros | None = None

    def deletes(self, wakes: Iterable[Wake]) -> None:
        """Record the deletes that the wakes name."""
        seen: list[TruthDelete | ProjectionDelete] = []
        for wake in wakes:
            at = wake.deleted_at
            if at is None or wake.group is None or wake.looked_again:
                continue
            slot = wake.slot
            if wake.deleted_from == self.family.truth.table and wake.source is not None:
                seen.append(TruthDelete(wake.source, wake.key, at))
            elif wake.deleted_from == self.family.listing.table and slot is not None:
                seen.append(ProjectionDelete(slot, at))
        if seen:
            self.lineage.remember_deletes(seen)

    def implied_deletes(self, wakes: Sequence[Wake], state: LookState) -> None:
        """Record the ends of rows that are gone without a delete that names them."""
        self.partition_deletes(wakes, state)
        self.expired(wakes, state)

    def partition_deletes(self, wakes: Iterable[Wake], state: LookState) -> None:
        """A delete of a source's whole truth partition counts for each of its rows that is gone."""
        seen = [
            TruthDelete(entry.source, entry.slot.key, wake.deleted_at)
            for wake in wakes
            if wake.deleted_at is not None and not wake.looked_again
            if wake.deleted_from == self.family.truth.table and wake.group is None
            if wake.source is not None
            for entry in state.remembered.get(wake.source, ())
            if not state.claimed(entry.slot, (entry.source,))
        ]
        if seen:
            self.lineage.remember_deletes(seen)

    def expired(self, wakes: Iterable[Wake], state: LookState) -> None:
        """A row that is gone after cells of it expired counts as deleted at that time."""
        seen = [
            TruthDelete(wake.source, slot.key, wake.deleted_at)
            for wake in wakes
            if wake.deleted_from == EXPIRED and wake.deleted_at is not None
            if wake.source is not None and (slot := wake.slot) is not None
            if not state.claimed(slot, (wake.source,))
        ]
        if seen:
            self.lineage.remember_deletes(seen)

    def rows(self, wakes: Iterable[Wake], state: LookState, now: Micros) -> None:
        """Record what lineage does not hold yet; expire what is gone on both sides.

        Each row is recorded as read from the truth, else as named by its event, else as listed. A
        row that came and went within this look is recorded and expired at once: no other event
        wakes it.
        """
        deleted = {*_deleted(wakes)}
        seen = (
            *self._projected(state),
            *self._told(wakes, state),
            *self._read(state, deleted, now),
        )
        new = {_named(entry): entry for entry in seen}
        if new:
            self.lineage.remember(new.values())
        absent = state.targets.keys() - state.rows.keys()
        known = {_named(entry): entry for slot in absent for entry in state.entries.get(slot, ())}
        known |= {place: entry for place, entry in new.items() if entry.slot in absent}
        gone = [
            entry
            for entry in known.values()
            if not entry.expiring and not state.claimed(entry.slot, (entry.source,))
        ]
        self._let_go(gone, self._one_sided(state))

    def _let_go(self, gone: Sequence[Entry], undecided: Collection[SourceInGroup]) -> None:
        """Expire the entries of sources that are gone from the group with all their rows.

        While one of a source's rows is left, what became of the others is evidence about it. Their
        entries and the received deletes are then kept.
        """
        going = {_named(entry) for entry in gone}
        sources = {each.source for each in gone} | {source for source, _group in undecided}
        remembered = self.lineage.of_sources(list(sources)) if sources else {}
        entries = [each for some in remembered.values() for each in some]
        partly = {
            _place(each) for each in entries if not each.expiring and _named(each) not in going
        } & {_place(each) for each in gone}
        kept: dict[SourceInGroup, list[Entry]] = defaultdict(list)
        for each in entries:
            if _place(each) in partly or _place(each) in undecided:
                kept[_place(each)].append(each)
        if renewed := [each for some in kept.values() for each in some if each.expiring]:
            self.lineage.remember(renewed)
        if kept:
            self.lineage.keep_deletes(
                {place: [each.slot for each in some] for place, some in kept.items()}
            )
        if forgettable := [each for each in gone if _place(each) not in kept]:
            self.lineage.expire(forgettable)

    def _one_sided(self, state: LookState) -> set[SourceInGroup]:
        """The sources, by group, of rows on one side only: their deletes are evidence."""
        return {
            (source, slot.group)
            for slot, target in state.targets.items()
            for source in target.sources
            if bool(state.claimed(slot, (source,))) != (slot in state.rows)
        }

    def _projected(self, state: LookState) -> Iterator[Entry]:
        for slot, row in state.rows.items():
            named = self.family.listing.source_of(row)
            if named is not None and state.entry(slot, named) is None:
                yield Entry(named, slot, in_truth=False)

    def _told(self, wakes: Iterable[Wake], state: LookState) -> Iterator[Entry]:
        """Rows that events name, also those of the listing: a row may be gone again by now."""
        for wake in sorted(wakes, key=lambda each: each.from_truth):  # the truth's come last
            slot, source = wake.slot, wake.source
            if slot is None or source is None or wake.looked_again:
                continue
            before = state.entry(slot, source)
            if before is None or (wake.from_truth and not before.in_truth):
                yield Entry(source, slot, in_truth=wake.from_truth)

    def _read(self, state: LookState, deleted: Set[Named], now: Micros) -> Iterator[Entry]:
        """The entries of truth rows, with the earliest read since watching began.

        If a delete in ``deleted`` may have ended a row that is still there, ``had_at`` records the
        read; so it does if the listing lacks the row, which is to be added again. Cells that are
        left of a row after its delete do not count as read.
        """
        for slot, claims in state.claims.items():
            for source, row in claims:
                before = state.entry(slot, source)
                names = {(None, slot.key), (source, (slot.group,)), (source, ())} if deleted else ()
                told = not deleted.isdisjoint(names)
                asked = told or (slot in state.targets and slot not in state.rows)
                read_at = None if is_incomplete(self.family, row) else now
                had_at = read_at if asked else None
                kept = had_at or (None if before is None else before.had_at)
                newly_read = read_at is not None and self._outdated(before)
                if before is None or not before.in_truth or newly_read:
                    yield Entry(source, slot, in_truth=True, recorded_at=read_at, had_at=kept)
                elif before.expiring or had_at is not None:
                    yield replace(before, had_at=kept)

    def _outdated(self, before: Entry | None) -> bool:
        recorded_at = None if before is None else before.recorded_at
        return recorded_at is None or recorded_at < (self.watched_since or 0)


Named = tuple[KeyValue | None, tuple[KeyValue, ...]]
"""A source and the key parts that a delete named of it; the source is None for a whole key."""


def _deleted(wakes: Iterable[Wake]) -> Iterator[Named]:
    for wake in wakes:
        if wake.deleted_at is not None and not wake.looked_again:
            named = tuple(part for part in wake.key if part is not None)
            yield (wake.source if len(named) < len(wake.key) else None), named


def _named(entry: Entry) -> tuple[KeyValue, Slot]:
    return entry.source, entry.slot


def _place(entry: Entry) -> SourceInGroup:
    return entry.source, entry.slot.group
