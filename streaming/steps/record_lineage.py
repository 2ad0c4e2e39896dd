"""What a look leaves in lineage: the rows it read on both sides, and the deletes it was told of."""

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
    """Writes one look into lineage."""

    family: Family
    lineage: Lineage
    watched_since: Micros | None = None

    def deletes(self, wakes: Iterable[Wake]) -> None:
        """What the wakes tell of deletes."""
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
        """Of rows that no delete has named, and that are gone."""
        self.partition_deletes(wakes, state)
        self.expired(wakes, state)

    def partition_deletes(self, wakes: Iterable[Wake], state: LookState) -> None:
        """A delete of a source's whole truth partition is one of each row that is gone."""
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
        """A row of which cells have expired, and that is gone, was as good as deleted."""
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
        """Write to lineage only what it does not hold yet; let go of what is gone on both sides.

        Each row counts as read from the truth, else as told by its event, else as projected. One
        that came and went within this look is written, and let go at once: nothing else wakes it.
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
        """Of sources that are gone from the group with all their rows.

        While a row is left, what became of the others is evidence about it: so nothing that is
        remembered of them is forgotten then, nor the deletes that were heard.
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
        """Of rows that only one side has: which delete has meant them is asked, now or later."""
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
        """By events of the listing, too: its row may have come and gone within this look."""
        for wake in sorted(wakes, key=lambda each: each.from_truth):  # what the truth told counts
            slot, source = wake.slot, wake.source
            if slot is None or source is None or wake.looked_again:
                continue
            before = state.entry(slot, source)
            if before is None or (wake.from_truth and not before.in_truth):
                yield Entry(source, slot, in_truth=wake.from_truth)

    def _read(self, state: LookState, deleted: Set[Named], now: Micros) -> Iterator[Entry]:
        """The earliest read since watching began is kept; what was expiring is renewed as it is.

        Of a row that one of the ``deleted`` may have ended, and did not, so much is kept; so it is
        of one that the listing lacks, which is to be added again. What is left of a row after its
        delete has not outlived it, and counts as told, not as read.
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
"""A source, and as much of the key as a delete named of it; no source: a whole key."""


def _deleted(wakes: Iterable[Wake]) -> Iterator[Named]:
    for wake in wakes:
        if wake.deleted_at is not None and not wake.looked_again:
            named = tuple(part for part in wake.key if part is not None)
            yield (wake.source if len(named) < len(wake.key) else None), named


def _named(entry: Entry) -> tuple[KeyValue, Slot]:
    return entry.source, entry.slot


def _place(entry: Entry) -> SourceInGroup:
    return entry.source, entry.slot.group
