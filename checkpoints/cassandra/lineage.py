"""Lineage in Cassandra: for each family two tables of entries and three of deletes.

`of_slots` runs for every examined key, and reads a group's rows from one partition. `of_sources`
runs only if an event named no slot. Writes are grouped, with many in flight.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from cassandra.query import PreparedStatement

from checkpoints.cassandra.kept_deletes import KeptDeletes
from checkpoints.cassandra.lineage_writes import prepared_writes, request_of
from checkpoints.cassandra.store import Request, Store
from checkpoints.cassandra.watches import Watches
from checkpoints.lineage import KEPT_AFTER_LOSS, Delete, SourceInGroup
from checkpoints.lineage_tables import LineageTables, equal, marks, names
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family
from reconcilers.rows.deletes import (
    Deletes,
    OwnDelete,
    ProjectionDelete,
    RowDeletes,
    TruthDelete,
    deletes_of,
)
from reconcilers.rows.memory import Entry, Watching
from reconcilers.words.groups import in_groups
from reconcilers.words.key import KeyColumn
from reconcilers.words.model import KeyValue, Micros, Slot

IDS_A_READ = 100
ROWS_A_BATCH = 30
"""Rows of one partition: some 2 KiB, below Cassandra's warning about large batches."""
ROWS_AS_ONE = 200
"""Rows of one source in one group: some 20 KiB, well below the size that Cassandra refuses."""
PARTITIONS_A_BATCH = 10
"""With more partitions in a batch, Cassandra warns."""
DELETES_KEPT = timedelta(days=90)
OWN_DELETES_KEPT = 2
"""A factor: our delete outlasts its event, which comes later and may come again."""


class CassandraLineage:
    """`checkpoints.lineage.Lineage`. Entries are written by source first, then by row.

    Every row entry therefore has its source entry. After a crash in between, the next look, which
    reads by row, writes the entry again. Expiry is written in the opposite order. Entries of a
    source in a group are written as one, because a part of them would look complete.
    ``recorded_at`` is written as given, so callers pass an entry only if it is absent, expiring, or
    without it. ``in_truth`` is never unset.
    """

    def __init__(
        self, store: Store, family: Family = MESSAGE, deletes_kept: timedelta = DELETES_KEPT
    ) -> None:
        self._store = store
        self._key = family.key
        self._deletes_kept = int(deletes_kept.total_seconds())
        tables, place = LineageTables(family), [family.truth.source, *family.key]
        self._prepare_reads(store, tables, family.truth.source)
        self._prepare_deletes(store, tables, family.truth.source)
        self._kept_deletes, self._watches = KeptDeletes(store, family), Watches(store)
        self._by_source_writes = prepared_writes(store, tables.by_source, place)
        self._by_row_writes = prepared_writes(store, tables.by_row, place)

    def _prepare_reads(self, store: Store, tables: LineageTables, source: KeyColumn) -> None:
        key, (group, *rest) = self._key, self._key
        entry = f"{names([source, *key])}, in_truth, recorded_at, TTL(seen), had_at"
        leading = "".join(f"{column.name} = ? AND " for column in key[:-1])
        self._by_source = store.prepare(
            f"SELECT {entry} FROM $ks.{tables.by_source} WHERE {source.name} IN ?"
        )
        self._by_slot = store.prepare(
            f"SELECT {entry} FROM $ks.{tables.by_row} WHERE {leading}{key[-1].name} IN ?"
        )
        of_group = f"SELECT {names([*key, source])} FROM $ks.{tables.by_row} WHERE {equal([group])}"
        self._by_group = store.prepare(of_group)
        self._by_group_from = store.prepare(f"{of_group} AND {rest[0].name} >= ?")
        self._truth_deletes = store.prepare(
            f"SELECT {names([source, group, *rest])}, deleted_at FROM $ks.{tables.truth_deletes}"
            f" WHERE {source.name} IN ? AND {equal([group])}"
        )
        self._projection_deletes = store.prepare(
            f"SELECT {names(key)}, deleted_at, sent_at FROM $ks.{tables.projection_deletes}"
            f" WHERE {leading}{key[-1].name} IN ?"
        )
        self._group_deletes = store.prepare(
            f"SELECT deleted_at FROM $ks.{tables.group_deletes}"
            f" WHERE {equal([group])} AND deleted_at >= ? AND deleted_at <= ? LIMIT 1"
        )

    def _prepare_deletes(self, store: Store, tables: LineageTables, source: KeyColumn) -> None:
        def insert(table: str, columns: Sequence[KeyColumn]) -> PreparedStatement:
            return store.prepare(
                f"INSERT INTO $ks.{table} ({names(columns)}, deleted_at)"
                f" VALUES ({marks(columns)}, ?) USING TTL ?"
            )

        self._truth_delete = insert(tables.truth_deletes, [source, *self._key])
        self._projection_delete = insert(tables.projection_deletes, self._key)
        self._own_delete = store.prepare(
            f"INSERT INTO $ks.{tables.projection_deletes} ({names(self._key)}, deleted_at, sent_at)"
            f" VALUES ({marks(self._key)}, ?, ?) USING TTL ?"
        )
        self._group_delete = insert(tables.group_deletes, self._key[:1])

    def of_sources(self, sources: Sequence[KeyValue]) -> dict[KeyValue, list[Entry]]:
        """The entries of each source in all groups."""
        requests = self._store.partitions(self._by_source, dict.fromkeys(sources))
        found: dict[KeyValue, list[Entry]] = defaultdict(list)
        for entry in self._entries("reading lineage", requests):
            found[entry.source].append(entry)
        return dict(found)

    def of_slots(self, slots: Sequence[Slot]) -> dict[Slot, list[Entry]]:
        """The entries at each slot."""
        requests = (
            (self._by_slot, (*leading, list(some)))
            for leading, lasts in _together(slots)
            for some in in_groups(lasts, IDS_A_READ)
        )
        found: dict[Slot, list[Entry]] = defaultdict(list)
        for entry in self._entries("reading lineage by row", requests):
            found[entry.slot].append(entry)
        return dict(found)

    def _entries(self, doing: str, requests: Iterable[Request]) -> Iterator[Entry]:
        for source, *key, in_truth, recorded, expires, had in self._store.gather(doing, requests):
            yield Entry(source, Slot(*key), bool(in_truth), recorded, expires is not None, had)

    def of_group(self, group: KeyValue) -> Iterator[tuple[Slot, KeyValue]]:
        """Every slot of a group, with a source seen there, page by page."""
        for *key, source in self._store.rows("reading a group's lineage", self._by_group, group):
            yield Slot(*key), source

    def of_group_from(self, group: KeyValue, first: KeyValue) -> Iterator[tuple[Slot, KeyValue]]:
        """The slots of a group from ``first`` on, in the order of its partition."""
        doing = "reading a part of a group's lineage"
        for *key, source in self._store.rows(doing, self._by_group_from, group, first):
            yield Slot(*key), source

    def remember(self, entries: Iterable[Entry]) -> None:
        """Write entries to both tables without expiry."""
        self._write("remembering lineage", list(entries), kept=0)

    def expire(self, entries: Iterable[Entry]) -> None:
        """Write entries again, to expire after `KEPT_AFTER_LOSS`."""
        self._write("letting lineage expire", list(entries), int(KEPT_AFTER_LOSS.total_seconds()))

    def _write(self, doing: str, entries: Sequence[Entry], kept: int) -> None:
        by_source: dict[tuple[KeyValue, KeyValue], list[Request]] = defaultdict(list)
        for entry in entries:
            place = entry.source, entry.slot.group
            by_source[place].append(request_of(self._by_source_writes, entry, kept))
        as_one = (
            group for writes in by_source.values() for group in in_groups(writes, ROWS_AS_ONE)
        )
        by_row = (
            (entry.slot.group, request_of(self._by_row_writes, entry, kept)) for entry in entries
        )
        halves = [self._store.by_replica(as_one, PARTITIONS_A_BATCH), self._by_partition(by_row)]
        for requests in reversed(halves) if kept else halves:
            self._store.run(doing, requests)

    def _by_partition(self, requests: Iterable[tuple[KeyValue, Request]]) -> Iterator[Request]:
        partitions: dict[KeyValue, list[Request]] = defaultdict(list)
        for partition, request in requests:
            partitions[partition].append(request)
        for together in partitions.values():
            for group in in_groups(together, ROWS_A_BATCH):
                yield self._store.batch(group)

    def remember_deletes(self, deletes: Iterable[Delete]) -> None:
        """Store deletes that were received, or will be sent; durable when this returns."""
        single = (
            [request] for each in dict.fromkeys(deletes) for request in self._delete_requests(each)
        )
        self._store.run("remembering deletes", self._store.by_replica(single, PARTITIONS_A_BATCH))

    def _delete_requests(self, delete: Delete) -> Iterator[Request]:
        kept = self._deletes_kept
        match delete:
            case TruthDelete(source, key, at):
                named = [
                    column.none_named if part is None else part
                    for column, part in zip(self._key, key, strict=True)
                ]
                yield self._truth_delete, (source, *named, at, kept)
                yield self._group_delete, (key[0], at, kept)
            case ProjectionDelete(slot, at):
                yield self._projection_delete, (*slot.key, at, kept)
            case OwnDelete(slot, at, sent_at):
                yield self._own_delete, (*slot.key, at, sent_at, OWN_DELETES_KEPT * kept)

    def keep_deletes(self, slots: Mapping[SourceInGroup, Collection[Slot]]) -> None:
        """Store deletes without expiry."""
        self._kept_deletes.keep(slots)

    def truth_deletes(self, source: KeyValue, group: KeyValue) -> Deletes:
        """The received truth deletes of this source in this group."""
        return self.truth_deletes_of({group: [source]})[source, group]

    def truth_deletes_of(
        self, sources: Mapping[KeyValue, Collection[KeyValue]]
    ) -> dict[SourceInGroup, Deletes]:
        """The truth deletes of many sources by group; a read has many sources of a group."""
        requests = (
            each
            for group, some in sources.items()
            for each in self._store.partitions(self._truth_deletes, some, after=(group,))
        )
        seen: dict[SourceInGroup, list[tuple[tuple[KeyValue | None, ...], Micros]]]
        seen = {(source, group): [] for group, some in sources.items() for source in some}
        for source, *key, deleted_at in self._store.gather("reading truth deletes", requests):
            seen[source, key[0]].append((self._named(key), deleted_at))
        return {pair: deletes_of(some) for pair, some in seen.items()}

    def _named(self, key: Sequence[KeyValue]) -> tuple[KeyValue | None, ...]:
        return tuple(
            None if part == column.none_named else part
            for column, part in zip(self._key, key, strict=True)
        )

    def projection_deletes(self, slot: Slot) -> RowDeletes:
        """The received deletes of this projection row, and when we sent one."""
        return self.projection_deletes_of([slot])[slot]

    def projection_deletes_of(self, slots: Iterable[Slot]) -> dict[Slot, RowDeletes]:
        """The deletes of many projection rows; a read has many rows of a group."""
        received: dict[Slot, set[Micros]] = {slot: set() for slot in slots}
        sent: dict[Slot, Micros] = {}
        requests = (
            each
            for leading, lasts in _together(received)
            for each in self._store.partitions(self._projection_deletes, lasts, before=leading)
        )
        for *key, at, sent_at in self._store.gather("reading projection deletes", requests):
            slot = Slot(*key)
            if sent_at is None:
                received[slot].add(at)
            else:
                sent[slot] = max(sent_at, sent.get(slot, sent_at))
        return {slot: RowDeletes(frozenset(at), sent.get(slot)) for slot, at in received.items()}

    def truth_deletes_in_group(self, group: KeyValue, since: Micros, until: Micros) -> bool:
        """Whether a truth delete of this group was written between two times (µs, inclusive)."""
        rows = self._store.rows("reading truth deletes", self._group_deletes, group, since, until)
        return any(True for _row in rows)

    def watching(self) -> Watching | None:
        """Since when every change has been received; None if unknown."""
        return self._watches.watching()

    def watch_from(self, at: Micros, captured: str = "") -> None:
        """Start watching, or restart it, at a time (µs)."""
        self._watches.begin(at, captured)

    def stop_watching(self) -> None:
        """Stop watching: changes may have been missed."""
        self._watches.begin(None, None)

    def mark_swept(self, at: Micros, since: Micros) -> None:
        """Store the end (µs) of a sweep's truth half, unless memory has restarted."""
        self._watches.mark_swept(at, since)

    def mark_listed(self, at: Micros, since: Micros) -> None:
        """Store the end (µs) of a sweep's listing half, unless memory has restarted."""
        self._watches.mark_listed(at, since)


def _together(
    slots: Iterable[Slot],
) -> Iterable[tuple[tuple[KeyValue, ...], list[KeyValue]]]:
    """The last parts of the slots' keys, by the other parts."""
    together: dict[tuple[KeyValue, ...], list[KeyValue]] = defaultdict(list)
    for slot in dict.fromkeys(slots):
        together[slot.key[:-1]].append(slot.key[-1])
    return together.items()
