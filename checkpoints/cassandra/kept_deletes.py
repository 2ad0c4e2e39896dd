"""Deletes that lineage stores without expiry, because only one side still has their row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

from cassandra.query import UNSET_VALUE, PreparedStatement

from checkpoints.cassandra.store import Request, Store
from checkpoints.lineage import SourceInGroup
from checkpoints.lineage_tables import LineageTables, equal, marks, names
from reconcilers.declared.family import Family
from reconcilers.words.key import KeyColumn
from reconcilers.words.model import Slot

PARTITIONS_A_BATCH = 10
SENT_AT = KeyColumn("sent_at", "bigint", "")
"""Null if the delete is not ours."""


class KeptDeletes:
    """Reads deletes and writes each again without a TTL."""

    def __init__(self, store: Store, family: Family) -> None:
        tables, self._store = LineageTables(family), store
        source, group, *rest = self._truth = [family.truth.source, *family.key]
        self._listed = list(family.key)
        read = partial(_read, store)
        self._of_truth = read(tables.truth_deletes, self._truth, [source, group])
        self._of_row = read(tables.projection_deletes, [*self._listed, SENT_AT], [group, *rest])
        self._keep_truth = _write(store, tables.truth_deletes, self._truth)
        self._keep_row = _write(store, tables.projection_deletes, [*self._listed, SENT_AT])

    def keep(self, slots: Mapping[SourceInGroup, Collection[Slot]]) -> None:
        """Store the deletes of each source in a group, and of these slots, without expiry."""
        doing = "keeping deletes"
        truth = ((self._of_truth, place) for place in slots)
        rows = ((self._of_row, slot.key) for each in slots.values() for slot in each)
        self._again(self._keep_truth, self._store.gather(doing, truth))
        self._again(self._keep_row, self._store.gather(doing, rows))

    def _again(self, statement: PreparedStatement, found: Iterator[tuple[object, ...]]) -> None:
        single: Iterator[list[Request]] = ([(statement, _as_it_was(row))] for row in list(found))
        self._store.run("keeping deletes", self._store.by_replica(single, PARTITIONS_A_BATCH))


def _read(
    store: Store, table: str, columns: list[KeyColumn], partition: list[KeyColumn]
) -> PreparedStatement:
    return store.prepare(
        f"SELECT {names(columns)}, deleted_at FROM $ks.{table} WHERE {equal(partition)}"
    )


def _as_it_was(row: tuple[object, ...]) -> tuple[object, ...]:
    """A row whose null cells stay unwritten: writing null would leave a tombstone."""
    return tuple(UNSET_VALUE if each is None else each for each in row)


def _write(store: Store, table: str, columns: list[KeyColumn]) -> PreparedStatement:
    """An insert without the table's default TTL."""
    return store.prepare(
        f"INSERT INTO $ks.{table} ({names(columns)}, deleted_at)"
        f" VALUES ({marks(columns)}, ?) USING TTL 0"
    )
