"""Holds in Cassandra, in as many partitions for each family as findings have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from checkpoints.cassandra.buckets import BUCKETS, bucket_of, by_bucket
from checkpoints.cassandra.store import Store
from checkpoints.pauses import Resumed
from reconcilers.declared.family import Family
from reconcilers.limits.hold import Hold
from reconcilers.words.key import slot_from_text, text_of
from reconcilers.words.model import Slot

COLUMNS = "projection, key, asked_at, who, reason, ended_at"


class CassandraHolds:
    """`checkpoints.holds.Holds` on the table holds: a row for each hold, ended ones included."""

    def __init__(self, store: Store) -> None:
        self._store = store
        here = f"SELECT {COLUMNS} FROM $ks.holds WHERE family = ? AND bucket = ?"
        self._list = store.prepare(here)
        self._at = store.prepare(f"{here} AND projection = ? AND key IN ?")
        self._place = store.prepare(
            "INSERT INTO $ks.holds (family, bucket, projection, key, asked_at, who, reason)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        self._end = store.prepare(
            "UPDATE $ks.holds SET ended_at = ?, ended_by = ?, end_reason = ?"
            " WHERE family = ? AND bucket = ? AND projection = ? AND key = ? AND asked_at = ?"
        )

    def place(self, hold: Hold) -> None:
        """Write one row, which a quorum reads as it is written."""
        values = (*_place(hold), hold.asked_at, hold.who, hold.reason)
        self._store.run("placing a hold", [(self._place, values)])

    def standing(self, family: Family, projection: str, slots: Iterable[Slot]) -> dict[Slot, Hold]:
        """The holds in force at these slots, by a few reads for many slots."""
        requests = (
            (self._at, (family.name, bucket, projection, keys)) for bucket, keys in by_bucket(slots)
        )
        rows = self._store.gather("reading holds", requests)
        return {each.slot: each for each in _standing(family, rows)}

    def end(self, hold: Hold, by: Resumed) -> None:
        """End each hold in force at the slot, by a new read."""
        family, bucket, projection, key = _place(hold)
        rows = self._store.rows("reading holds", self._at, family, bucket, projection, [key])
        ends = [
            (self._end, (by.at, by.who, by.reason, family, bucket, projection, key, asked_at))
            for _, _, asked_at, _, _, ended_at in rows
            if ended_at is None
        ]
        self._store.run("ending a hold", ends)

    def withdraw(self, hold: Hold, by: Resumed) -> None:
        """End the row of this hold."""
        values = (by.at, by.who, by.reason, *_place(hold), hold.asked_at)
        self._store.run("withdrawing a hold", [(self._end, values)])

    def all(self, family: Family) -> Iterator[Hold]:
        """All holds in force, partition by partition."""
        for bucket in range(BUCKETS):
            rows = self._store.rows("listing holds", self._list, family.name, bucket)
            yield from _standing(family, rows)


def _standing(family: Family, rows: Iterable[tuple[object, ...]]) -> Iterator[Hold]:
    """The oldest hold in force at each slot; rows are ordered by time."""
    told: set[tuple[object, object]] = set()
    for projection, key, asked_at, who, reason, ended_at in rows:
        if ended_at is not None or (projection, key) in told:
            continue
        told.add((projection, key))
        slot = slot_from_text(family.key, str(key))
        at = int(str(asked_at))
        yield Hold(family.name, str(projection), slot, at, str(who or ""), str(reason or ""))


def _place(hold: Hold) -> tuple[str, int, str, str]:
    key = text_of(hold.slot)
    return hold.family, bucket_of(key), hold.projection, key
