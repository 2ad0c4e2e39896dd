"""Lineage by row, undecoded, for a glance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from checkpoints.cassandra.raw_select import RawReads
from checkpoints.lineage_tables import LineageTables, names
from reconcilers.declared.family import Family
from reconcilers.declared.raw import RawKey, RawRow

ENTRY = ("boolean", "bigint", "int")
"""The types of the columns after an entry's key and source."""


class CassandraRawLineage:
    """`checkpoints.lineage.RawLineage`: the entries that `CassandraLineage.of_slots` reads."""

    def __init__(self, reads: RawReads, keyspace: str, family: Family) -> None:
        key, source = family.key, family.truth.source
        leading = "".join(f"{column.name} = ? AND " for column in key[:-1])
        self._entries = reads.select(
            f"SELECT {names([*key, source])}, in_truth, recorded_at, TTL(seen)"
            f" FROM {keyspace}.{LineageTables(family).by_row} WHERE {leading}{key[-1].name} IN ?"
        )
        self._types = (*(column.own_type for column in (*key, source)), *ENTRY)

    def entries(self, keys: Iterable[RawKey]) -> Iterator[RawRow]:
        """The entries at each slot. Raises `Refused` if a column has another type."""
        self._entries.require(*self._types)
        for rows in self._entries.by_key(keys):
            yield from rows
