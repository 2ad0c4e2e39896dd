"""How a sweep reads whole tables: which columns of each, and which keys its rows name. Pure.

==========================  =================================  ====================================
family                      read of each table                 compared
==========================  =================================  ====================================
with a raw shape            the columns of the shape; keys of  undecoded rows, by a glance
(`reconcilers.declared.     an index
raw`)
any other (access rights)   the partition keys of the truth;   each source and each key, by a look
                            the keys of a projection
==========================  =================================  ====================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import Struct

from reconcilers.declared.family import Family, Projection
from reconcilers.declared.raw import RawCell, RawRow, decoder, raw_shape
from reconcilers.declared.truth import TruthTable, source_of
from reconcilers.words.model import KeyValue, Wake


@dataclass(frozen=True, slots=True)
class TableScan:
    """The ``columns`` that a sweep reads of a table, those of its ``partition`` key among them.

    ``distinct``: each partition is one row. ``types`` are the CQL types, in our own tables, that
    the first columns must have.
    """

    table: str
    columns: tuple[str, ...]
    partition: tuple[str, ...]
    distinct: bool = False
    types: tuple[str, ...] = ()

    def partition_of(self, row: RawRow) -> RawCell:
        """The bytes of a row's partition key, from which Cassandra makes its token."""
        cells = [row[self.columns.index(each)] for each in self.partition]
        if len(cells) == 1:
            return cells[0]
        return b"".join(LENGTH.pack(len(each)) + each + b"\0" for each in cells if each is not None)


LENGTH = Struct(">H")
"""The length of each part of a partition key of several columns."""

WakeOf = Callable[[RawRow], Wake | None]
"""From a row to the key that is compared for it; None if the row is of another thing."""


def scans_of(family: Family) -> tuple[TableScan, ...]:
    """The scans of a bound family's tables, those of the truth first."""
    truth, listing, shape = family.truth, family.listing, raw_shape(family)
    if shape is None:
        return (
            *(_of_sources(table, truth) for table in truth.tables),
            *(_of_keys(each, family) for each in _scanned(family)),
        )
    first = TableScan(truth.table, shape.truth, (truth.source.name,))
    second = TableScan(listing.table, shape.listing, _partition(listing))
    indexes = (TableScan(each.table, each.key, _partition(each)) for each in _scanned(family)[1:])
    return first, second, *indexes


def phases_of(family: Family) -> tuple[tuple[str, ...], ...]:
    """The tables to scan, in order; those of a phase together.

    A truth that fills lineage comes first.
    """
    truth, projections = family.truth.tables, tuple(each.table for each in _scanned(family))
    return (truth, projections) if family.remembered else ((*truth, *projections),)


def _scanned(family: Family) -> tuple[Projection, ...]:
    """The projections with a row for each key: not those that collect."""
    return tuple(each for each in family.projections if each.collects is None)


def _of_sources(table: str, truth: TruthTable) -> TableScan:
    source = truth.source
    of_partition = "text" if truth.is_shared else source.own_type
    name = (source.name,)
    return TableScan(table, name, name, distinct=True, types=(of_partition,))


def _of_keys(projection: Projection, family: Family) -> TableScan:
    types = tuple(column.own_type for column in family.key)
    return TableScan(projection.table, projection.key, _partition(projection), types=types)


def _partition(projection: Projection) -> tuple[str, ...]:
    return projection.partition or projection.key[:1]


def wakes_of(family: Family) -> Mapping[str, WakeOf]:
    """For each table of a family without a raw shape, the keys that its rows name."""
    truth = family.truth
    partition = bytes.decode if truth.is_shared else decoder(truth.source)
    key = [decoder(column) for column in family.key]

    def of_source(row: RawRow) -> Wake | None:
        (cell,) = row
        source = None if cell is None else source_of(truth, partition(cell))
        return None if source is None else Wake(_led_to(truth, source), source, changes=0)

    def of_key(row: RawRow) -> Wake | None:
        parts = zip(key, row, strict=True)
        named = tuple([decode(cell) for decode, cell in parts if cell is not None])
        return Wake(named, None, changes=0)

    of_truth = dict.fromkeys(truth.tables, of_source)
    return of_truth | {each.table: of_key for each in _scanned(family)}


def _led_to(truth: TruthTable, source: KeyValue) -> tuple[KeyValue | None, ...]:
    """The parts of the key that are known of each slot of a source."""
    name = truth.source.name
    return tuple(source if each == name else None for each in truth.named_key)
