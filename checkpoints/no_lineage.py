"""The lineage of a family that needs none: it stores nothing, and knows of no row and no delete."""
# ruff: noqa: ARG002 (the arguments are the port's)

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from checkpoints.lineage import Delete, SourceInGroup
from reconcilers.rows.deletes import NO_DELETES, Deletes, RowDeletes
from reconcilers.rows.memory import Entry, Watching
from reconcilers.words.model import KeyValue, Micros, Slot


class NoLineage:
    """`checkpoints.lineage.Lineage` of a family that is not `remembered`."""

    def of_sources(self, sources: Sequence[KeyValue]) -> dict[KeyValue, list[Entry]]:
        """No entries."""
        return {}

    def of_slots(self, slots: Sequence[Slot]) -> dict[Slot, list[Entry]]:
        """No entries."""
        return {}

    def of_group(self, group: KeyValue) -> Iterator[tuple[Slot, KeyValue]]:
        """No slots."""
        return iter(())

    def of_group_from(self, group: KeyValue, first: KeyValue) -> Iterator[tuple[Slot, KeyValue]]:
        """No slots."""
        return iter(())

    def remember(self, entries: Iterable[Entry]) -> None:
        """Store nothing."""

    def expire(self, entries: Iterable[Entry]) -> None:
        """Do nothing."""

    def remember_deletes(self, deletes: Iterable[Delete]) -> None:
        """Store nothing."""

    def keep_deletes(self, slots: Mapping[SourceInGroup, Collection[Slot]]) -> None:
        """Store nothing."""

    def truth_deletes(self, source: KeyValue, group: KeyValue) -> Deletes:
        """No deletes."""
        return Deletes()

    def truth_deletes_of(
        self, sources: Mapping[KeyValue, Collection[KeyValue]]
    ) -> dict[SourceInGroup, Deletes]:
        """No deletes of any of these sources."""
        return {(each, group): Deletes() for group, some in sources.items() for each in some}

    def projection_deletes(self, slot: Slot) -> RowDeletes:
        """No deletes."""
        return NO_DELETES

    def projection_deletes_of(self, slots: Iterable[Slot]) -> dict[Slot, RowDeletes]:
        """No deletes of any of these rows."""
        return dict.fromkeys(slots, NO_DELETES)

    def truth_deletes_in_group(self, group: KeyValue, since: Micros, until: Micros) -> bool:
        """False: no deletes."""
        return False

    def watching(self) -> Watching | None:
        """None: it does not watch."""
        return None

    def watch_from(self, at: Micros, captured: str = "") -> None:
        """Store nothing."""

    def stop_watching(self) -> None:
        """Do nothing."""

    def mark_swept(self, at: Micros, since: Micros) -> None:
        """Store nothing."""

    def mark_listed(self, at: Micros, since: Micros) -> None:
        """Store nothing."""
