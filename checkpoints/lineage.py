"""Lineage: remembering which projection keys were seen (the port, and what it means).

A truth delete may name no row and a projection delete no source (a message's names no UID, its
row's no message), so both sides of each row that a
look reads are remembered here. Only what is absent is written. When both sides are gone an entry is
kept for `KEPT_AFTER_LOSS` more, because late writes come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from reconcilers.declared.raw import RawKey, RawRow
from reconcilers.rows.deletes import Deletes, OwnDelete, ProjectionDelete, RowDeletes, TruthDelete
from reconcilers.rows.memory import Entry, Watching
from reconcilers.words.model import KeyValue, Micros, Slot

KEPT_AFTER_LOSS = timedelta(days=20)
Delete = TruthDelete | ProjectionDelete | OwnDelete
SourceInGroup = tuple[KeyValue, KeyValue]
"""A source, and a group that it has slots in."""


class Lineage(Protocol):
    """Implementations: `CassandraLineage` in `checkpoints.cassandra`, `MemoryLineage`."""

    def of_sources(self, sources: Sequence[KeyValue]) -> dict[KeyValue, list[Entry]]:
        """Entries of each source, all groups. Sources without any are left out."""

    def of_slots(self, slots: Sequence[Slot]) -> dict[Slot, list[Entry]]:
        """The sources ever seen at each slot. Slots without any are left out."""

    def of_group(self, group: KeyValue) -> Iterator[tuple[Slot, KeyValue]]:
        """Every slot of a group with a source seen there (paged)."""

    def of_group_from(self, group: KeyValue, first: KeyValue) -> Iterator[tuple[Slot, KeyValue]]:
        """The same from a value of the second key column on, in its order."""

    def remember(self, entries: Iterable[Entry]) -> None:
        """Write entries, both ways round; idempotent; renews one that was expiring.

        Only for an entry that is absent, that lacks ``recorded_at``, that is expiring, or of which
        ``had_at`` is newer (given as it was read): the earliest ``recorded_at`` counts, and a later
        one would replace it. ``in_truth`` of an entry that has it is never taken back.
        """

    def expire(self, entries: Iterable[Entry]) -> None:
        """Both sides are gone: keep the entries for `KEPT_AFTER_LOSS` more."""

    def remember_deletes(self, deletes: Iterable[Delete]) -> None:
        """These deletes were seen, or are about to be sent by us: durable when this returns."""

    def keep_deletes(self, slots: Mapping[SourceInGroup, Collection[Slot]]) -> None:
        """Keep for good what was heard of deletes of a source in a group, and of these its slots.

        A delete that is remembered again afterwards may be forgotten again.
        """

    def truth_deletes(self, source: KeyValue, group: KeyValue) -> Deletes:
        """The truth deletes seen for this source in this group."""

    def truth_deletes_of(
        self, sources: Mapping[KeyValue, Collection[KeyValue]]
    ) -> dict[SourceInGroup, Deletes]:
        """As `truth_deletes`, of many sources by group, in few reads; each of them is there."""

    def projection_deletes(self, slot: Slot) -> RowDeletes:
        """The deletes seen for this projection row, and when we have sent one."""

    def projection_deletes_of(self, slots: Iterable[Slot]) -> dict[Slot, RowDeletes]:
        """As `projection_deletes`, of many rows, in few reads; each of them is there."""

    def truth_deletes_in_group(self, group: KeyValue, since: Micros, until: Micros) -> bool:
        """Whether any truth delete of this group was written between two times (µs)."""

    def watching(self) -> Watching | None:
        """Since when every change has been heard; None while that is not known."""

    def watch_from(self, at: Micros, captured: str = "") -> None:
        """Watching begins (anew) at this time (µs); no sweep from before it counts.

        ``captured`` names the watched tables as they are captured now.
        """

    def stop_watching(self) -> None:
        """Changes may have been missed: nothing is whole until watching begins anew."""

    def mark_swept(self, at: Micros, since: Micros) -> None:
        """A sweep counts; the truth half of it ended at this time (µs).

        Only of the memory that began at ``since`` (µs): where it has begun anew, or does while this
        is written, nothing is marked.
        """

    def mark_listed(self, at: Micros, since: Micros) -> None:
        """The same of its listing half."""


class RawLineage(Protocol):
    """What a glance asks of lineage; `CassandraRawLineage` in `checkpoints.cassandra`."""

    def entries(self, keys: Iterable[RawKey]) -> Iterable[RawRow]:
        """The entries at each slot, undecoded: see `reconcilers.rows.glance.remembered`.

        Raises `Refused` where the columns are not of the types that a glance needs.
        """
