"""One family's truth and projections: batched reads, confirming reads, guarded writes.

All errors of the driver leave here as `reconcilers.errors`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from uuid import UUID

from cassandra.cluster import Session
from cassandra.query import BatchStatement, BatchType

from checkpoints.cassandra.driver_errors import translated
from reconcilers.errors import NotGuarded
from reconcilers.family import Family, Projection
from reconcilers.model import Row, Slot
from reconcilers.writes import Write
from streaming.settings import CassandraSettings
from streaming.tables.cql import as_cql
from streaming.tables.rate_limit import RateLimiter
from streaming.tables.session import serial
from streaming.tables.statement_cache import StatementCache

KEYS_PER_READ = 100
NO_ELEMENTS: frozenset[str] = frozenset()


class Tables:
    """One family's truth and projections, in one keyspace. Not shared between threads."""

    def __init__(self, session: Session, settings: CassandraSettings, family: Family) -> None:
        self._session = session
        self._settings = settings
        self._family = family
        self._pace = RateLimiter(settings.rows_per_second)
        self._statements = StatementCache(session)
        self._truth_columns = _copied(family)
        self._sets = frozenset[str]().union(*(each.sets for each in family.projections))

    # --- step 3: look, at QUORUM, without write times

    def truth_rows(self, messageids: Iterable[UUID]) -> dict[UUID, tuple[Row, ...]]:
        """All truth rows of each message; messages without any are left out."""
        columns = ", ".join((*self._truth_key, *self._truth_columns))
        query = self._prepare(
            f"SELECT {columns} FROM {self._table(self._family.truth)}"
            f" WHERE {self._family.partition} IN ?"
        )
        found: dict[UUID, list[Row]] = defaultdict(list)
        for rows in self._read(query, ((list(some),) for some in _chunks(messageids))):
            for row in rows:
                found[row[self._family.partition]].append(Row(_cells(row, self._sets)))
        return {messageid: tuple(rows) for messageid, rows in found.items()}

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        """The projection's rows at these slots; absent ones are left out."""
        if projection.collects is not None:
            return self._gathered(projection, slots)
        rows = self._projection_rows(projection, slots, projection.columns)
        return {slot: Row(cells) for slot, cells in rows}

    def mailbox_slots(
        self, projection: Projection, mailboxid: UUID
    ) -> Iterator[tuple[Slot, UUID | None]]:
        """Every slot of a mailbox in the projection, with the message its row names (paged)."""
        mailbox, uid = projection.key
        query = self._prepare(
            f"SELECT {uid}, {projection.identity} FROM {self._table(projection.table)}"
            f" WHERE {mailbox} = ?"
        )
        rows: Iterable[Any] = self._statements.rows(query, (mailboxid,))
        for row in rows:
            yield Slot(mailboxid, row[uid]), row[projection.identity]

    # --- step 5: confirm, with write times; the projection FIRST, the truth SECOND

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        """The projection's rows with the write times of their cells (µs; sets have none)."""
        if projection.is_index:
            return self.projection_rows(projection, slots)
        columns = (*projection.columns, *_times(projection.columns, projection.sets))
        rows = self._projection_rows(projection, slots, columns)
        return {slot: _with_times(cells) for slot, cells in rows}

    def truth_serially(self, messageids: Iterable[UUID]) -> dict[UUID, tuple[Row, ...]]:
        """All truth rows of each message at serial consistency, with write times.

        A serial read completes a user's pending lightweight transaction; that is its own write.
        """
        times = _times(self._truth_columns, self._sets | {self._family.partition})
        columns = ", ".join((*self._truth_key, *self._truth_columns, *times))
        query = self._statements.prepared(
            f"SELECT {columns} FROM {self._table(self._family.truth)}"
            f" WHERE {self._family.partition} = ?",
            consistency_level=serial(self._settings),
        )
        asked = list(messageids)
        answers = self._read(query, ((messageid,) for messageid in asked))
        return {
            messageid: tuple(_with_times(_cells(row, self._sets)) for row in rows)
            for messageid, rows in zip(asked, answers, strict=True)
            if rows
        }

    # --- step 6: repair

    def apply(self, writes: Sequence[Write]) -> None:
        """Send the guarded writes of one row, as one mutation.

        Raises `Unreachable` when it is not known whether they were applied, `Refused` when they
        were not and will not be.
        """
        if len({(write.projection.table, write.slot) for write in writes}) != 1:
            raise NotGuarded("the writes of one repair are to one row")
        bound = [self._bind(*as_cql(write, self._settings.keyspace)) for write in writes]
        with translated("repairing a projection row"):
            if len(bound) == 1:
                self._session.execute(bound[0])
                return
            batch = BatchStatement(batch_type=BatchType.UNLOGGED)
            for statement in bound:
                batch.add(statement)
            self._session.execute(batch)

    def _bind(self, cql: str, values: tuple[object, ...]) -> Any:
        return self._prepare(cql).bind(values)

    # --- how

    @property
    def _truth_key(self) -> tuple[str, ...]:
        return (self._family.partition, *self._family.slot)

    def _table(self, table: str) -> str:
        return f"{self._settings.keyspace}.{table}"

    def _prepare(self, cql: str) -> Any:
        return self._statements.prepared(cql)

    def _read(
        self, query: Any, arguments: Iterable[tuple[object, ...]]
    ) -> Iterator[list[dict[str, Any]]]:
        """The rows of each execution, in order, at the pace."""
        for rows in self._statements.each(query, arguments):
            self._pace.spend(len(rows))
            yield rows

    def _projection_rows(
        self, projection: Projection, slots: Iterable[Slot], columns: Sequence[str]
    ) -> Iterator[tuple[Slot, dict[str, Any]]]:
        mailbox, uid = projection.key
        query = self._prepare(
            f"SELECT {', '.join((mailbox, uid, *columns))}"
            f" FROM {self._table(projection.table)} WHERE {mailbox} = ? AND {uid} IN ?"
        )
        by_mailbox: dict[UUID, list[int]] = defaultdict(list)
        for slot in slots:
            by_mailbox[slot.mailboxid].append(slot.uid)
        arguments = (
            (mailboxid, list(some))
            for mailboxid, uids in by_mailbox.items()
            for some in _chunks(uids)
        )
        for rows in self._read(query, arguments):
            for row in rows:
                yield Slot(row[mailbox], row[uid]), _cells(row, projection.sets)

    def _gathered(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        """Its mailbox's one row for each slot."""
        (mailbox,) = projection.key
        query = self._prepare(
            f"SELECT {', '.join((mailbox, *projection.columns))}"
            f" FROM {self._table(projection.table)} WHERE {mailbox} = ?"
        )
        asked = list(slots)
        mailboxids = dict.fromkeys(slot.mailboxid for slot in asked)
        rows = {
            row[mailbox]: Row(_cells(row, projection.sets))
            for found in self._read(query, ((each,) for each in mailboxids))
            for row in found
        }
        return {slot: rows[slot.mailboxid] for slot in asked if slot.mailboxid in rows}


def _cells(row: dict[str, Any], sets: Iterable[str]) -> dict[str, Any]:
    for column in sets:
        elements = row[column]
        row[column] = frozenset(elements) if elements else NO_ELEMENTS
    return row


TIME = "written_"


def _with_times(cells: dict[str, Any]) -> Row:
    """The row, its write times apart from its cells."""
    written = {
        name.removeprefix(TIME): cells.pop(name) for name in list(cells) if name.startswith(TIME)
    }
    return Row(cells, {column: at for column, at in written.items() if at is not None})


def _times(columns: Iterable[str], without: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        f"writetime({column}) AS {TIME}{column}" for column in columns if column not in without
    )


def _copied(family: Family) -> tuple[str, ...]:
    """The truth's columns that some projection copies or that must not be null."""
    copied = {column for each in family.projections for column in each.columns}
    return tuple(sorted((copied | set(family.required)) - {family.partition, *family.slot}))


def _chunks(items: Iterable[Any]) -> Iterator[list[Any]]:
    remaining = iter(items)
    while some := list(islice(remaining, KEYS_PER_READ)):
        yield some
