"""One family's truth and projections: batched reads, confirming reads, guarded writes.

The driver's errors are raised as `reconcilers.words.errors`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from cassandra.cluster import Session
from cassandra.query import BatchStatement, BatchType

from checkpoints.cassandra.driver_errors import translated
from reconcilers.declared.family import Family, Projection
from reconcilers.declared.writes import Write
from reconcilers.words.errors import NotGuarded
from reconcilers.words.model import KeyValue, Row, Slot
from streaming.settings import CassandraSettings
from streaming.tables.cql import as_cql
from streaming.tables.rate_limit import RateLimiter
from streaming.tables.session import levels_of
from streaming.tables.statement_cache import StatementCache

KEYS_PER_READ = 100
NO_ELEMENTS: frozenset[str] = frozenset()


class Tables:
    """One family's truth and projections, in one keyspace. Not thread-safe."""

    def __init__(self, session: Session, settings: CassandraSettings, family: Family) -> None:
        self._session = session
        self._settings = settings
        self._truth = family.truth
        self.pace = RateLimiter(settings.rows_per_second)
        self._statements = StatementCache(session)
        self._truth_columns = _copied(family)
        self._sets = family.truth.sets.intersection(self._truth_columns)
        self._newer: Tables | None = None
        if family.truth.newer is not None:
            self._newer = Tables(session, settings, replace(family, truth=family.truth.newer))
            self._newer.pace = self.pace  # one budget

    # --- step 3: look, at QUORUM, without write times

    def truth_rows(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source; sources without any are left out."""
        return self._truths((), sources, Row)

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        """The projection's rows at these slots; absent ones are left out."""
        if projection.collects is not None:
            return self._collected(projection, slots)
        rows = self._projection_rows(projection, slots, _read(projection))
        return {slot: Row(cells) for slot, cells in rows}

    def slots_of_group(
        self, projection: Projection, group: KeyValue
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        """Every slot of a group in the projection, with the source that its row names; paged."""
        yield from self._slots(projection, "", (group,))

    def some_slots(
        self, projection: Projection, group: KeyValue, most: int, first: KeyValue | None
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        """Up to ``most`` slots of a group, from the second key part ``first`` on, or the last."""
        column = projection.key[1]
        if first is None:
            yield from self._slots(projection, f" ORDER BY {column} DESC LIMIT ?", (group, most))
        else:
            yield from self._slots(projection, f" AND {column} >= ? LIMIT ?", (group, first, most))

    def _slots(
        self, projection: Projection, rest: str, values: tuple[object, ...]
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        columns = ", ".join(dict.fromkeys((*projection.key, str(projection.identity))))
        table, group = self._table(projection.table), projection.key[0]
        part = " ALLOW FILTERING" if projection.partition else ""  # not its partition key
        query = self._prepare(f"SELECT {columns} FROM {table} WHERE {group} = ?{rest}{part}")
        for row in self._statements.rows(query, values):
            self.pace.spend(1)
            slot = Slot(*(row[column] for column in projection.key))
            yield slot, projection.as_source(row[str(projection.identity)])

    # --- step 5: confirm, with write times; the projection FIRST, the truth SECOND

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        """The projection's rows with write times (µs); sets and indexes have none."""
        if projection.is_index:
            return self.projection_rows(projection, slots)
        read = _read(projection)
        columns = (*read, *_times(read, projection.sets))
        rows = self._projection_rows(projection, slots, columns)
        return {slot: _with_times(cells) for slot, cells in rows}

    def truth_serially(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source at serial consistency, with write times.

        A serial read completes a user's pending lightweight transaction: a write of the user.
        """
        asked, stored = list(sources), dict[KeyValue, list[Row]]()
        serial = levels_of(self._settings).serial
        for select in self._selects(self._truth_times):
            query = self._statements.prepared(
                f"{select} WHERE {self._source} = ?", consistency_level=serial
            )
            answers = self._read(query, ((self._truth.partition_of(source),) for source in asked))
            for source, rows in zip(asked, answers, strict=True):
                if rows:
                    stored[source] = [_with_times(_cells(row, self._sets)) for row in rows]
        moved = self._newer.truth_serially(asked) if self._newer else ()
        return self._truth.rows_of_each(stored, moved)

    def truth_with_times(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source with write times; sources without any are left out."""
        return self._truths(self._truth_times, sources, _with_times)

    @property
    def _truth_times(self) -> tuple[str, ...]:
        untimed = self._sets | self._truth.as_json | {self._source}
        return _times(self._truth_columns, untimed)

    def _selects(self, times: Iterable[str]) -> Iterator[str]:
        """A query of each table of the truth, older ones first: rows move to the newer ones."""
        told = self._truth.as_json
        cells = (f"toJson({each}) AS {each}" if each in told else each for each in self._stored)
        columns = ", ".join((*cells, *times))
        yield from (f"SELECT {columns} FROM {self._table(each)}" for each in self._truth.tables)

    # --- step 6: repair

    def apply(self, writes: Sequence[Write]) -> None:
        """Send the guarded writes of one row, as one mutation.

        Raises `Unreachable` if the outcome is unknown, `Refused` if they were not applied.
        """
        if len({(write.projection.table, write.slot) for write in writes}) != 1:
            raise NotGuarded("the writes of one repair are to one row")
        told = (as_cql(write, self._settings.keyspace) for write in writes)
        bound = [self._prepare(cql).bind(values) for cql, values in told]
        with translated("repairing a projection row"):
            if len(bound) == 1:
                self._session.execute(bound[0])
                return
            batch = BatchStatement(batch_type=BatchType.UNLOGGED)
            for statement in bound:
                batch.add(statement)
            self._session.execute(batch)

    # --- how

    @property
    def _source(self) -> str:
        return self._truth.source.name

    @property
    def _stored(self) -> tuple[str, ...]:
        """The truth's columns that are read, its key first."""
        return tuple(dict.fromkeys((self._source, *self._truth.stored_key, *self._truth_columns)))

    def _table(self, table: str) -> str:
        return f"{self._settings.keyspace}.{table}"

    def _prepare(self, cql: str) -> Any:
        return self._statements.prepared(cql)

    def _read(
        self, query: Any, arguments: Iterable[tuple[object, ...]]
    ) -> Iterator[list[dict[str, Any]]]:
        """The rows of each execution, in order, at the pace."""
        return self._paced(self._statements.each(query, arguments))

    def _paced(self, answers: Iterator[list[dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
        for rows in answers:
            self.pace.spend(len(rows))
            yield rows

    @property
    def _most(self) -> int:
        return self._settings.partitions_per_read

    def _truths(
        self,
        times: Iterable[str],
        sources: Iterable[KeyValue],
        made: Callable[[dict[str, Any]], Row],
    ) -> dict[KeyValue, tuple[Row, ...]]:
        named = {self._truth.partition_of(source): source for source in sources}
        stored: dict[KeyValue, list[Row]] = {}
        for select in self._selects(times):
            query = self._prepare(f"{select} WHERE {self._source} IN ?")
            found: dict[KeyValue, list[Row]] = defaultdict(list)
            for rows in self._paced(self._statements.partitions(query, [*named], self._most)):
                for row in rows:
                    found[named[row[self._source]]].append(made(_cells(row, self._sets)))
            stored |= found
        moved = self._newer.truth_rows(named.values()) if self._newer else ()
        return self._truth.rows_of_each(stored, moved)

    def _projection_rows(
        self, projection: Projection, slots: Iterable[Slot], columns: Sequence[str]
    ) -> Iterator[tuple[Slot, dict[str, Any]]]:
        *leading, last = projection.key
        where = "".join(f"{column} = ? AND " for column in leading)
        query = self._prepare(
            f"SELECT {', '.join((*projection.key, *columns))}"
            f" FROM {self._table(projection.table)} WHERE {where}{last} IN ?"
        )
        together: dict[tuple[KeyValue, ...], list[KeyValue]] = defaultdict(list)
        for slot in slots:
            together[slot.key[:-1]].append(slot.key[-1])
        arguments = (
            (*key, list(some)) for key, lasts in together.items() for some in _chunks(lasts)
        )
        for rows in self._read(query, arguments):
            for row in rows:
                slot = Slot(*[row[column] for column in projection.key])
                yield slot, _cells(row, projection.sets)

    def _collected(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        """For each slot the one row of its group."""
        (group,) = projection.key
        query = self._prepare(
            f"SELECT {', '.join((group, *projection.columns))}"
            f" FROM {self._table(projection.table)} WHERE {group} = ?"
        )
        asked = list(slots)
        groups = dict.fromkeys(slot.group for slot in asked)
        rows = {
            row[group]: Row(_cells(row, projection.sets))
            for found in self._read(query, ((each,) for each in groups))
            for row in found
        }
        return {slot: rows[slot.group] for slot in asked if slot.group in rows}


def _cells(row: dict[str, Any], sets: Iterable[str]) -> dict[str, Any]:
    for column in sets:
        elements = row[column]
        row[column] = frozenset(elements) if elements else NO_ELEMENTS
    return row


TIME = "written_"


def _with_times(cells: dict[str, Any]) -> Row:
    """A row whose write times are separated from its cells."""
    written = {
        name.removeprefix(TIME): cells.pop(name) for name in list(cells) if name.startswith(TIME)
    }
    return Row(cells, {column: at for column, at in written.items() if at is not None})


def _times(columns: Iterable[str], without: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        f"writetime({column}) AS {TIME}{column}" for column in columns if column not in without
    )


def _read(projection: Projection) -> tuple[str, ...]:
    """The columns of its rows, without the key."""
    return (*projection.columns, *projection.keeps)


def _copied(family: Family) -> tuple[str, ...]:
    """The truth's columns that a projection copies or that must not be null, without its key.

    If truth rows are derived, they are the columns from which they are.
    """
    if family.truth.derive is not None:
        return family.truth.derive.reads
    copied = {column for each in family.projections for column in each.columns}
    truth = family.truth
    return tuple(sorted((copied | set(truth.required)) - {truth.source.name, *truth.slot}))


def _chunks(items: Iterable[Any]) -> Iterator[list[Any]]:
    remaining = iter(items)
    while some := list(islice(remaining, KEYS_PER_READ)):
        yield some
