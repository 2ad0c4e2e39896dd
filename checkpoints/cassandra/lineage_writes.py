"""The statements that write a lineage entry, one for each combination of known values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from cassandra.query import PreparedStatement

from checkpoints.cassandra.store import Request, Store
from checkpoints.lineage_tables import equal
from reconcilers.rows.memory import Entry
from reconcilers.words.key import KeyColumn

Writes = dict[tuple[str, ...], PreparedStatement]
SET = ("in_truth = true", "recorded_at = ?", "had_at = ?")


def prepared_writes(store: Store, table: str, place: Sequence[KeyColumn]) -> Writes:
    """A statement for each combination of assignments."""
    known = [some for count in range(len(SET) + 1) for some in combinations(SET, count)]
    return {
        some: store.prepare(
            f"UPDATE $ks.{table} USING TTL ? SET {', '.join(('seen = true', *some))}"
            f" WHERE {equal(place)}"
        )
        for some in known
    }


def request_of(writes: Writes, entry: Entry, kept: int) -> Request:
    """The write of an entry that expires after ``kept`` seconds; 0: never."""
    known = (entry.in_truth or None, entry.recorded_at, entry.had_at)
    some = tuple(name for name, value in zip(SET, known, strict=True) if value is not None)
    times = [value for value in known[1:] if value is not None]
    return writes[some], (kept, *times, entry.source, *entry.slot.key)
