"""James's tables and lineage in memory, undecoded, as a glance reads them; and decoded, as a look.

Cells are bytes, as Cassandra would send them; what the driver makes of them is what a look sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cassandra.cqltypes import (
    BooleanType,
    Int32Type,
    LongType,
    SetType,
    TimeUUIDType,
    UTF8Type,
)

from reconcilers.declared.family import Family, Projection, Schema
from reconcilers.declared.raw import BIGINT, RawCell, RawKey, RawRow, RawShape, raw_shape
from reconcilers.words.key import KeyColumn
from reconcilers.words.model import KeyValue, Row, Slot, Value
from streaming.tables.dates import _Milliseconds
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.memory_tables import MemoryTables

PROTOCOL = 5
TYPES: Mapping[str, Any] = {
    "bigint": LongType,
    "boolean": BooleanType,
    "int": Int32Type,
    "set<text>": SetType.apply_parameters([UTF8Type]),
    "text": UTF8Type,
    "timestamp": _Milliseconds,
    "timeuuid": TimeUUIDType,
}
RawCells = dict[str, RawCell]
"""A row by its columns; those that are left out are null."""


def encoded(cql_type: str, value: Value) -> RawCell:
    """A cell as it is sent."""
    if value is None:
        return None
    in_order = sorted(value) if isinstance(value, frozenset) else value
    sent: bytes = TYPES[cql_type].to_binary(in_order, PROTOCOL)
    return sent


def shape_of(family: Family) -> RawShape:
    shape = raw_shape(family)
    assert shape is not None
    return shape


@dataclass
class RawMemoryTables:
    """`RawTables` of one family; ``read`` are the tables that were asked, in order."""

    family: Family
    schema: Schema
    rows: dict[str, list[RawCells]] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shape = shape_of(self.family)

    def put(self, table: str, **cells: Value) -> None:
        types = self.schema[table]
        raw = {column: encoded(types[column], value) for column, value in cells.items()}
        self.rows.setdefault(table, []).append(raw)

    # --- undecoded

    def require_comparable(self) -> None:
        """They are, always."""

    def truth(self, sources: Iterable[RawCell]) -> Iterator[RawRow]:
        column, wanted = self.family.truth.source.name, set(sources)
        return self._read(self.family.truth.table, (column,), {(each,) for each in wanted})

    def listing(self, keys: Iterable[RawKey]) -> Iterator[RawRow]:
        first = self.family.listing
        return self._read(first.table, first.key, set(keys))

    def index(self, index: Projection, keys: Iterable[RawKey]) -> Iterator[RawKey]:
        return self._read(index.table, index.key, set(keys))

    def collected(
        self, index: Projection, groups: Iterable[RawKey]
    ) -> Iterator[tuple[RawKey, frozenset[str]]]:
        wanted = set(groups)
        self.read.append(index.table)
        for row in self.rows.get(index.table, []):
            key = tuple(row[column] for column in index.key)
            if key in wanted:
                column = str(index.collects)
                there: Any = self._value(index.table, column, row.get(column))
                yield key, there

    def decoded(self, column: str, cell: RawCell) -> Value:
        return self._value(self.family.truth.table, column, cell)

    def _read(self, table: str, key: tuple[str, ...], wanted: set[RawKey]) -> Iterator[RawRow]:
        shapes = {
            self.family.truth.table: self.shape.truth,
            self.family.listing.table: self.shape.listing,
        }
        self.read.append(table)
        for row in self.rows.get(table, []):
            if tuple(row[column] for column in key) in wanted:
                yield tuple(row.get(column) for column in shapes.get(table, key))

    # --- decoded

    def as_looked_at(self) -> MemoryTables:
        """The same rows with values for cells."""
        tables, truth = MemoryTables(), self.family.truth
        for cells in self.rows.get(truth.table, []):
            row = self._row(truth.table, cells)
            source: Any = row.get(truth.source.name)
            tables.truths[source] = (*tables.truths.get(source, ()), row)
        for projection in self.family.projections:
            rows = tables.rows.setdefault(projection.name, {})
            for cells in self.rows.get(projection.table, []):
                row = self._row(projection.table, cells)
                place: list[Any] = [row.get(column) for column in projection.key]
                for slot in [Slot(*place)] if projection.collects is None else self._slots(place):
                    rows[slot] = row
        return tables

    def _slots(self, group: list[Any]) -> Iterator[Slot]:
        """Those of a group that the truth has: each of them has the group's row."""
        for cells in self.rows.get(self.family.truth.table, []):
            row = self._row(self.family.truth.table, cells)
            place: list[Any] = [row.get(column) for column in self.family.truth.slot]
            if place[: len(group)] == group:
                yield Slot(*place)

    def _row(self, table: str, cells: RawCells) -> Row:
        columns = self.schema[table]
        return Row({each: self._value(table, each, cells.get(each)) for each in columns})

    def _value(self, table: str, column: str, cell: RawCell) -> Value:
        kind = self.schema[table][column]
        value: Any = TYPES[kind].from_binary(cell, PROTOCOL)
        return frozenset(value or ()) if kind.startswith("set<") else value


@dataclass
class RawMemoryLineage:
    """`RawLineage` of a `MemoryLineage`."""

    family: Family
    lineage: MemoryLineage

    def entries(self, keys: Iterable[RawKey]) -> Iterator[RawRow]:
        wanted, columns = set(keys), (*self.family.key, self.family.truth.source)
        for entry in list(self.lineage._entries.values()):
            key = raw_key(columns, entry.slot.key)
            if key in wanted:
                (source,) = raw_key(columns[-1:], (entry.source,))
                recorded = None if entry.recorded_at is None else BIGINT.pack(entry.recorded_at)
                lives = b"\0\0\0\x09" if entry.expiring else None
                yield (*key, source, b"\x01" if entry.in_truth else None, recorded, lives)


def raw_key(columns: Iterable[KeyColumn], key: Iterable[KeyValue]) -> RawKey:
    """A key as it is sent."""
    return tuple(encoded(each.type, part) for each, part in zip(columns, key, strict=False))
