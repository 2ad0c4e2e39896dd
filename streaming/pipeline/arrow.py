"""The keys of a slice, as a worker gets them: Arrow columns, made into wakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from reconcilers.family import Family
from reconcilers.key import UUIDS, KeyColumn
from reconcilers.model import WAKE_FIELDS, KeyValue, Kind, Micros, Wake


@dataclass(frozen=True, slots=True)
class WriteTimes:
    """Of the keys that a change woke: the oldest write (µs), how many were written by fast clocks.

    ``freshest`` is the newest write and its capture delay. A write from the future is not taken for
    it: until that time came, none would be newer.
    """

    oldest: Micros
    freshest: tuple[Micros, Micros] | None
    fast_writers: int


AHEAD: Micros = 1_000_000
"""A write that is captured so long before its own time is one from the future."""


@dataclass(frozen=True, slots=True)
class SettledKeys:
    """One Arrow batch of the keys of a slice (`keys.grouper`)."""

    keys: pa.RecordBatch
    bad: list[dict[str, Any]]
    """Records that could not be decoded, with their reason."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> SettledKeys:
        """Keys and bad records apart."""
        good = pc.is_null(batch["reason"])
        return cls(batch.filter(good), batch.filter(pc.invert(good)).to_pylist())

    def wakes(self, family: Family) -> Iterator[Wake]:
        """Each key of this family as a wake."""
        source = self._ids(family.truth.source)
        keys = zip(*(self._ids(column) for column in family.key), strict=True)
        told = (self._told(name) for name in WAKE_FIELDS)
        for key, named, *rest in zip(keys, source, *told, strict=True):
            yield Wake(key, named, *rest)

    def _ids(self, column: KeyColumn) -> list[KeyValue | None]:
        values: list[Any] = self.keys.column(column.name).to_pylist()
        return [_uuid(each) for each in values] if column.type in UUIDS else values

    def _told(self, field: str) -> list[Any]:
        values: list[Any] = self.keys.column(field).to_pylist()
        if field != "suspected":
            return values
        return [Kind(each) if each else None for each in values]

    def write_times(self, fast: Micros) -> WriteTimes | None:
        """Of the keys that a change woke; None without any. ``fast``: so far ahead (µs) is fast.

        Events with an absurd time are not among them.
        """
        told = pc.and_(pc.invert(self.keys["looked_again"]), pc.is_valid(self.keys["quickest"]))
        changed = self.keys.filter(told)
        if not changed.num_rows:
            return None
        true = changed.filter(pc.greater_equal(changed["quickest"], -AHEAD))
        newest = pc.max(true["newest"])
        last = true.filter(pc.equal(true["newest"], newest))
        return WriteTimes(
            oldest=pc.min(changed["oldest"]).as_py(),
            freshest=(newest.as_py(), pc.max(last["quickest"]).as_py()) if true.num_rows else None,
            fast_writers=pc.sum(pc.less(changed["quickest"], -fast)).as_py(),
        )


@lru_cache(maxsize=10_000)
def _uuid(text: str | None) -> UUID | None:
    """Keys come in the order of their mailboxes, and a row's two keys one after the other."""
    return UUID(text) if text else None
