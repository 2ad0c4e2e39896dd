"""Counter tables, and what their rows sum up: the listing's mailboxes, and users' mailboxes.

The driver's errors are raised as `reconcilers.words.errors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from cassandra.cluster import Session
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import BatchStatement, BatchType

from checkpoints.cassandra.driver_errors import translated
from reconcilers.declared.family import Family
from reconcilers.declared.tally import Cell, Listed, QuotaRoot, Sum, Sums, Tally
from reconcilers.declared.writes import AddToCounter
from reconcilers.words.errors import NotGuarded
from streaming.settings import CassandraSettings
from streaming.tables.owners import MailboxOwners
from streaming.tables.rate_limit import RateLimiter
from streaming.tables.statement_cache import StatementCache

PAGE = 1_000


class CounterTables:
    """Counters and what they sum up, in one keyspace. Not thread-safe.

    At most ``rows_per_second`` rows of the listing are read.
    """

    def __init__(
        self, session: Session, settings: CassandraSettings, family: Family, rows_per_second: int
    ) -> None:
        self._session = session
        self._keyspace = settings.keyspace
        self._family = family
        self._pace = RateLimiter(rows_per_second)
        self._statements = StatementCache(session)
        self._owners = MailboxOwners(session, settings)

    # --- counters

    def stored(self, tally: Tally, key: UUID | str) -> Sums | None:
        """The sums of a counter row, None when there is none; a null counter is 0."""
        found: dict[Sum, int] = {}
        for cells in _by_row(tally):
            where, values = _where(tally, key, cells[0][1])
            columns = ", ".join(cell.column for _, cell in cells)
            query = f"SELECT {columns} FROM {self._table(tally.table)} WHERE {where}"
            for row in self._rows(query, values):
                found |= {each: row[cell.column] or 0 for each, cell in cells}
        return {each: found.get(each, 0) for each in tally.cells} if found else None

    def add(self, write: AddToCounter) -> None:
        """Send a claimed delta once, as one mutation; the driver never retries it.

        Raises `Unreachable` if the outcome is unknown, `Refused` if it was not applied.
        """
        batch = BatchStatement(batch_type=BatchType.COUNTER, retry_policy=FallthroughRetryPolicy())
        for cells in _by_row(write.tally):
            changed = [(each, cell) for each, cell in cells if write.deltas.get(each)]
            if not changed:
                continue
            where, values = _where(write.tally, write.key, changed[0][1])
            sets = ", ".join(f"{cell.column} = {cell.column} + ?" for _, cell in changed)
            deltas = tuple(write.deltas[each] for each, _ in changed)
            query = f"UPDATE {self._table(write.tally.table)} SET {sets} WHERE {where}"
            batch.add(self._prepare(query), (*deltas, *values))
        if not len(batch):
            raise NotGuarded("a correction that adds nothing")
        with translated(f"correcting {write.tally.table}"):
            self._session.execute(batch)

    # --- what they sum up

    def listed(self, mailboxid: UUID, first: int = 0, last: int = 2**63 - 1) -> Iterator[Listed]:
        """The messages of a mailbox in a range of UIDs; rows that name no message are left out."""
        mailbox, uid = self._family.listing.key
        rows = self._rows(
            f"SELECT {uid}, messageid, flagseen, fullcontentoctets"
            f" FROM {self._table(self._family.listing.table)}"
            f" WHERE {mailbox} = ? AND {uid} >= ? AND {uid} <= ?",
            (mailboxid, first, last),
        )
        for row in rows:
            self._pace.spend(1)
            if row["messageid"] is not None:
                size = row["fullcontentoctets"] or 0
                yield Listed(row[uid], row["messageid"], row["flagseen"] is True, size)

    def owner(self, mailboxid: UUID) -> QuotaRoot | None:
        """The quota root of a mailbox, None when the mailbox does not exist."""
        return self._owners.owner(mailboxid)

    def mailboxes(self, of: QuotaRoot) -> frozenset[UUID]:
        """The mailboxes that a user's paths name."""
        query = (
            f"SELECT mailboxid FROM {self._table('mailboxpathv3')} WHERE namespace = ? AND user = ?"
        )
        return frozenset(row["mailboxid"] for row in self._rows(query, (of.namespace, of.user)))

    # --- how

    def _table(self, table: str) -> str:
        return f"{self._keyspace}.{table}"

    def _prepare(self, query: str) -> Any:
        return self._statements.prepared(query, fetch_size=PAGE)

    def _rows(self, query: str, values: tuple[object, ...]) -> Iterator[dict[str, Any]]:
        return self._statements.rows(self._prepare(query), values)


def _by_row(tally: Tally) -> Iterable[list[tuple[Sum, Cell]]]:
    """The tally's cells, grouped by the row that they are in."""
    rows: dict[tuple[tuple[str, str], ...], list[tuple[Sum, Cell]]] = {}
    for each, cell in tally.cells.items():
        rows.setdefault(tuple(sorted(cell.row.items())), []).append((each, cell))
    return rows.values()


def _where(tally: Tally, key: UUID | str, cell: Cell) -> tuple[str, tuple[object, ...]]:
    columns = (tally.key, *cell.row)
    where = " AND ".join(f"{column} = ?" for column in columns)
    return where, (tally.row_key(key), *cell.row.values())
