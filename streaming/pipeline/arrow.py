"""The keys of a slice as a worker receives them: Arrow columns, turned into wakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from reconcilers.capture.frontier import Canary, Echo, node_of
from reconcilers.declared.family import Family
from reconcilers.declared.raw import RawCell, encoder
from reconcilers.rows.glance import Keys
from reconcilers.words.key import UUIDS, KeyColumn
from reconcilers.words.model import WAKE_FIELDS, KeyValue, Kind, Micros, Wake
from streaming.topics import came_astray


@dataclass(frozen=True, slots=True)
class WriteTimes:
    """Of the keys that a change woke: the oldest write (µs), and how many fast clocks wrote."""

    oldest: Micros | None = None
    fast_writers: int = 0

    def and_of(self, other: WriteTimes) -> WriteTimes:
        """Those of all keys of both."""
        oldest = [at for at in (self.oldest, other.oldest) if at is not None]
        return WriteTimes(min(oldest, default=None), self.fast_writers + other.fast_writers)


@dataclass(frozen=True, slots=True)
class SettledKeys:
    """One Arrow batch of the keys of a slice (`keys.grouper`)."""

    keys: pa.RecordBatch
    bad: list[dict[str, Any]]
    """Records that could not be decoded, each with its reason."""
    echoes: list[tuple[int, Echo]]
    """Canaries, with their offsets."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> SettledKeys:
        """Split a batch into keys, bad records and canaries."""
        echo, bad = pc.is_valid(batch["echo"]), pc.is_valid(batch["reason"])
        return cls(
            batch.filter(pc.invert(pc.or_(echo, bad))),
            batch.filter(bad).to_pylist(),
            [echo_of(row) for row in batch.filter(echo).to_pylist()],
        )

    def wakes(self, family: Family, numbers: Sequence[int] | None = None) -> Iterator[Wake]:
        """This family's keys with these numbers as wakes; all keys without ``numbers``."""
        chosen = self.keys if numbers is None else self.keys.take(pa.array(numbers, pa.int64()))
        source = _ids(chosen, family.truth.source)
        keys = zip(*(_ids(chosen, column) for column in family.key), strict=True)
        told = (_told(chosen, name) for name in WAKE_FIELDS)
        for key, named, *rest in zip(keys, source, *told, strict=True):
            yield Wake(key, named, *rest)

    def for_glance(self, family: Family) -> Keys:
        """All of this family's keys as `Keys.of` would make them of wakes, without making wakes."""
        keys, source = self.keys, family.truth.source
        whole = [pc.is_valid(keys[column.name]) for column in family.key]
        plain = [pc.invert(keys["looked_again"]), *whole]
        plain += [pc.is_null(keys[each]) for each in ("deleted_at", "deleted_from", "expires_at")]
        return Keys(
            [*zip(*(_ids(keys, column) for column in family.key), strict=True)],
            _sources(keys, source),
            reduce(pc.and_, plain).to_pylist(),
            keys["changes"].to_pylist(),
        )

    def write_times(self, fast: Micros) -> WriteTimes | None:
        """The write times of keys that a change woke; None if there are none.

        A writer that is ahead by more than ``fast`` (µs) is fast. Events with an absurd time are
        left out.
        """
        told = pc.and_(pc.invert(self.keys["looked_again"]), pc.is_valid(self.keys["quickest"]))
        changed = self.keys.filter(told)
        if not changed.num_rows:
            return None
        return WriteTimes(
            oldest=pc.min(changed["oldest"]).as_py(),
            fast_writers=pc.sum(pc.less(changed["quickest"], -fast)).as_py(),
        )


def _ids(keys: pa.RecordBatch, column: KeyColumn) -> list[KeyValue | None]:
    values: list[Any] = keys.column(column.name).to_pylist()
    return [_uuid(each) for each in values] if column.type in UUIDS else values


def _sources(keys: pa.RecordBatch, column: KeyColumn) -> list[RawCell]:
    """The sources as Cassandra sends them; not cached, because few rows share one."""
    values: list[Any] = keys.column(column.name).to_pylist()
    as_bytes = _uuid_bytes if column.type in UUIDS else encoder(column)
    assert as_bytes is not None
    return [None if each is None else as_bytes(each) for each in values]


def _uuid_bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("-", ""))


def _told(keys: pa.RecordBatch, field: str) -> list[Any]:
    values: list[Any] = keys.column(field).to_pylist()
    if field != "suspected":
        return values
    return [Kind(each) if each else None for each in values]


def echo_of(row: Any) -> tuple[int, Echo]:
    """The offset and echo of a row; its ``echo`` is the text of `sources.echo`."""
    place, lane, partitions, number, previous, steady, idle, at = row["echo"].split("|")
    told = int(number), int(previous), steady == "true", int(idle), int(at)
    astray = came_astray(place, int(lane), int(partitions), row["partition"])
    echo = Echo(Canary(node_of(place), *told), row["topic"], row["partition"], astray)
    return row["offset"], echo


@lru_cache(maxsize=10_000)
def _uuid(text: str | None) -> UUID | None:
    """Cached: keys are sorted by mailbox, and a row's two keys follow each other."""
    return UUID(text) if text else None
