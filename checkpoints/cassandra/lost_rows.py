"""Rows that are left, in Cassandra. Those of a family are spread over `BUCKETS` partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from checkpoints.cassandra.buckets import BUCKETS, bucket_of, by_bucket
from checkpoints.cassandra.store import Request, Store
from reconcilers.declared.family import Family
from reconcilers.sweep.lost_rows import LostRow
from reconcilers.words.groups import in_groups
from reconcilers.words.key import slot_from_text, text_of
from reconcilers.words.model import Kind, Slot

ROWS_A_BATCH = 30
"""Rows of one partition, some 100 bytes each."""


class CassandraLostRows:
    """`checkpoints.lost_rows.LostRowsStore` on the table lost_rows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        columns = "key, reason, counted_at, seen_at"
        here = "FROM $ks.lost_rows WHERE family = ? AND bucket = ?"
        self._at = store.prepare(f"SELECT {columns} {here} AND key IN ?")
        self._all = store.prepare(f"SELECT {columns} {here}")
        self._keep = store.prepare(
            f"INSERT INTO $ks.lost_rows (family, bucket, {columns}) VALUES (?, ?, ?, ?, ?, ?)"
        )
        self._forget = store.prepare(f"DELETE {here} AND key = ?")

    def at(self, family: Family, slots: Iterable[Slot]) -> dict[Slot, LostRow]:
        """The rows that are left at these slots, by a few reads for many slots."""
        requests = ((self._at, (family.name, bucket, keys)) for bucket, keys in by_bucket(slots))
        rows = self._store.gather("reading which rows are left", requests)
        return {row.slot: row for row in (_row(family, each) for each in rows)}

    def keep(self, family: Family, rows: Iterable[LostRow]) -> None:
        """Store rows as left, in batches of one partition."""
        partitions: dict[int, list[Request]] = defaultdict(list)
        for each in rows:
            key = text_of(each.slot)
            bucket = bucket_of(key)
            values = family.name, bucket, key, str(each.reason), each.counted_at, each.seen_at
            partitions[bucket].append((self._keep, values))
        batches = (
            self._store.batch(group)
            for requests in partitions.values()
            for group in in_groups(requests, ROWS_A_BATCH)
        )
        self._store.run("noting which rows are left", batches)

    def all(self, family: Family) -> Iterator[LostRow]:
        """All left rows of a family, page by page."""
        for bucket in range(BUCKETS):
            for each in self._store.rows(
                "listing which rows are left", self._all, family.name, bucket
            ):
                yield _row(family, each)

    def forget(self, family: Family, slots: Iterable[Slot]) -> None:
        """Remove these slots."""
        keys = (text_of(slot) for slot in slots)
        requests = ((self._forget, (family.name, bucket_of(key), key)) for key in keys)
        self._store.run("forgetting which rows were left", requests)


def _row(family: Family, row: tuple[str, str, int, int]) -> LostRow:
    key, reason, counted_at, seen_at = row
    return LostRow(slot_from_text(family.key, key), Kind(reason), counted_at, seen_at)
