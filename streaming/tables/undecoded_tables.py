"""One family's truth and projections as a glance reads them: in bulk, at QUORUM, undecoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from checkpoints.cassandra.raw_select import RawReads, RawSelect
from reconcilers.declared.family import Family, Projection
from reconcilers.declared.raw import RawCell, RawKey, RawRow, RawShape
from reconcilers.words.errors import Refused
from reconcilers.words.model import Value
from streaming.tables.rate_limit import RateLimiter

SET = "set<text>"


class UndecodedTables:
    """`streaming.steps.ports.RawTables` in one keyspace, at a shared ``pace``. Not thread-safe.

    Copied columns must have one type in both tables: only then are equal bytes equal values.
    """

    def __init__(
        self,
        reads: RawReads,
        keyspace: str,
        family: Family,
        shape: RawShape,
        pace: RateLimiter,
    ) -> None:
        self._family, self._shape, self._pace = family, shape, pace

        def select(columns: tuple[str, ...], table: str, key: tuple[str, ...]) -> RawSelect:
            where = " AND ".join((*(f"{column} = ?" for column in key[:-1]), f"{key[-1]} IN ?"))
            names = ", ".join(columns)
            return reads.select(f"SELECT {names} FROM {keyspace}.{table} WHERE {where}")

        first, *others = family.projections
        self._truth = select(shape.truth, family.truth.table, (family.truth.source.name,))
        self._listing = select(shape.listing, first.table, first.key)
        self._indexes = {
            each.name: select((*each.key, *filter(None, [each.collects])), each.table, each.key)
            for each in others
        }
        self._key = tuple(column.own_type for column in family.key)

    def require_comparable(self) -> None:
        """Raises `Refused` unless copied columns and keys have one type in both tables."""
        truth, listing = self._truth.types, self._listing.types
        (of_truth, of_listing), source = self._shape.copied, self._family.truth.source.own_type
        self._truth.require(*self._key)
        self._listing.require(*self._key)
        if truth[of_truth:] != listing[of_listing:]:
            self._truth.forget()
            self._listing.forget()
            raise Refused("what is copied has another type in the truth than in the listing")
        (at_truth, at_listing) = self._shape.source
        if {self._truth.type_at(at_truth), self._listing.type_at(at_listing)} != {source}:
            raise Refused(f"the source is not of type {source} in both tables")

    def truth(self, sources: Iterable[RawCell]) -> Iterator[RawRow]:
        """All truth rows of each source, undecoded. Raises as `require_comparable` does."""
        self.require_comparable()
        return self._paced(self._truth.by_key((each,) for each in sources))

    def listing(self, keys: Iterable[RawKey]) -> Iterator[RawRow]:
        """The listing's rows at these keys, undecoded. Raises as `require_comparable` does."""
        self.require_comparable()
        return self._paced(self._listing.by_key(keys))

    def index(self, index: Projection, keys: Iterable[RawKey]) -> Iterator[RawKey]:
        """The keys at which an index has a row."""
        select = self._indexes[index.name]
        select.require(*self._key)
        return self._paced(select.by_key(keys))

    def collected(
        self, index: Projection, groups: Iterable[RawKey]
    ) -> Iterator[tuple[RawKey, frozenset[str]]]:
        """The elements that each group's row has collected."""
        select, width = self._indexes[index.name], len(index.key)
        select.require(*self._key[:width], SET)
        for row in self._paced(select.by_key(groups)):
            yield row[:width], frozenset(select.decoded(width, row[width]) or ())

    def decoded(self, column: str, cell: RawCell) -> Value:
        """The value of a cell of the truth, as `streaming.tables.Tables` reads it."""
        value: Value = self._truth.decoded(self._shape.truth.index(column), cell)
        if any(column in each.sets for each in self._family.projections):
            return frozenset(value) if isinstance(value, Iterable) else frozenset()
        return value

    def _paced(self, answers: Iterator[list[RawRow]]) -> Iterator[RawRow]:
        for rows in answers:
            self._pace.spend(len(rows))
            yield from rows
