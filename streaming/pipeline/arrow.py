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
from reconcilers.frontier import Canary, Echo, node_of
from reconcilers.key import UUIDS, KeyColumn
from reconcilers.model import WAKE_FIELDS, KeyValue, Kind, Micros, Wake


@dataclass(frozen=True, slots=True)
class WriteTimes:
    """Of the keys that a change woke: the oldest write (µs), how many fast clocks wrote."""

    oldest: Micros
    fast_writers: int


@dataclass(frozen=True, slots=True)
class SettledKeys:
    """One Arrow batch of the keys of a slice (`keys.grouper`)."""

    keys: pa.RecordBatch
    bad: list[dict[str, Any]]
    """Records that could not be decoded, with their reason."""
    echoes: list[tuple[int, Echo]]
    """Canaries, with their offsets."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> SettledKeys:
        """Keys, bad records and canaries apart."""
        echo, bad = pc.is_valid(batch["echo"]), pc.is_valid(batch["reason"])
        return cls(
            batch.filter(pc.invert(pc.or_(echo, bad))),
            batch.filter(bad).to_pylist(),
            [_echo(row) for row in batch.filter(echo).to_pylist()],
        )

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
        return WriteTimes(
            oldest=pc.min(changed["oldest"]).as_py(),
            fast_writers=pc.sum(pc.less(changed["quickest"], -fast)).as_py(),
        )


def _echo(row: dict[str, Any]) -> tuple[int, Echo]:
    """The text that `envelope` makes of a canary's event."""
    place, number, previous, steady, tried = row["echo"].split("|")
    told = int(number), int(previous), steady == "true", int(tried)
    canary = Canary(node_of(place), *told)
    return row["offset"], Echo(canary, row["topic"], row["partition"])


@lru_cache(maxsize=10_000)
def _uuid(text: str | None) -> UUID | None:
    """Keys come in the order of their mailboxes, and a row's two keys one after the other."""
    return UUID(text) if text else None
