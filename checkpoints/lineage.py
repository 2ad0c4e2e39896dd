"""Lineage: a record of the projection keys that were seen (the port).

A truth delete may name no row, and a projection delete no source: a message's delete names no UID,
a row's delete no message. Both sides of each row that a look reads are therefore stored here, if
they are not stored yet. When both sides are gone, an entry lasts for `KEPT_AFTER_LOSS` more,
because late writes may arrive.
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
"""A source, and a group in which it has slots."""


class Lineage(Protocol):
    """Implementations: `checkpoints.cassandra.CassandraLineage`, and the fake `MemoryLineage`."""

    def of_sources(self, sources: Sequence[KeyValue]) -> dict[KeyValue, list[Entry]]:
        """The entries of each source in all groups. Sources without entries are left out."""

    def of_slots(self, slots: Sequence[Slot]) -> dict[Slot, list[Entry]]:
        """The entries at each slot. Slots without entries are left out."""

    def of_group(self, group: KeyValue) -> Iterator[tuple[Slot, KeyValue]]:
        """Every slot of a group, with a source seen there, read in pages."""

    def of_group_from(self, group: KeyValue, first: KeyValue) -> Iterator[tuple[Slot, KeyValue]]:
        """The slots of a group from a value of the second key column on, in its order."""

    def remember(self, entries: Iterable[Entry]) -> None:
        """Store entries in both tables, without expiry; idempotent.

        Call it only for an entry that is absent, expiring, without ``recorded_at``, or with a newer
        ``had_at``, as it was read. The earliest ``recorded_at`` counts, and a later one would
        replace it. ``in_truth`` is never unset.
        """

    def expire(self, entries: Iterable[Entry]) -> None:
        """Let entries of which both sides are gone expire after `KEPT_AFTER_LOSS`."""

    def remember_deletes(self, deletes: Iterable[Delete]) -> None:
        """Store deletes that were received, or that we will send; durable when this returns."""

    def keep_deletes(self, slots: Mapping[SourceInGroup, Collection[Slot]]) -> None:
        """Store deletes of these slots without expiry, until they are remembered again."""

    def truth_deletes(self, source: KeyValue, group: KeyValue) -> Deletes:
        """The received truth deletes of this source in this group."""

    def truth_deletes_of(
        self, sources: Mapping[KeyValue, Collection[KeyValue]]
    ) -> dict[SourceInGroup, Deletes]:
        """The truth deletes of many sources by group, in few reads; the result has each of them."""

    def projection_deletes(self, slot: Slot) -> RowDeletes:
        """The received deletes of this projection row, and when we sent one."""

    def projection_deletes_of(self, slots: Iterable[Slot]) -> dict[Slot, RowDeletes]:
        """The deletes of many projection rows, in few reads; the result has each row."""

    def truth_deletes_in_group(self, group: KeyValue, since: Micros, until: Micros) -> bool:
        """Whether a truth delete of this group was written between two times (µs, inclusive)."""

    def watching(self) -> Watching | None:
        """Since when every change has been received; None if unknown."""

    def watch_from(self, at: Micros, captured: str = "") -> None:
        """Start or restart watching at this time (µs); ``captured`` names the watched tables."""

    def stop_watching(self) -> None:
        """Stop: changes may have been missed, and no memory is complete until watching restarts."""

    def mark_swept(self, at: Micros, since: Micros) -> None:
        """Store that the truth half of a sweep ended at this time (µs).

        It counts only for the memory that began at ``since`` (µs). If memory has restarted, or
        restarts meanwhile, nothing is marked.
        """

    def mark_listed(self, at: Micros, since: Micros) -> None:
        """Store that the listing half of a sweep ended; ``at`` and ``since`` as in `mark_swept`."""


class RawLineage(Protocol):
    """What a glance reads of lineage; `CassandraRawLineage` in `checkpoints.cassandra`."""

    def entries(self, keys: Iterable[RawKey]) -> Iterable[RawRow]:
        """The undecoded entries at each slot. Raises `Refused` if a column has another type."""
