"""Counter tables, and what their rows sum up: the listing's mailboxes, and users' mailboxes.

The driver's errors are raised as `reconcilers.words.errors`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from cassandra.cluster import Session
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import BatchStatement, BatchType

from checkpoints.cassandra.driver_errors import translated
from reconcilers.declared.family import Family
from reconcilers.declared.tally import Cell, Listed, QuotaRoot, Sum, Sums, Tally, UidRange
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
        self._most = settings.partitions_per_read
        self._family = family
        self.pace = RateLimiter(rows_per_second)
        self._statements = StatementCache(session)
        self._owners = MailboxOwners(session, settings)

    # --- counters

    def stored(self, tally: Tally, key: UUID | str) -> Sums | None:
        """The sums of a counter row, None when there is none; a null counter is 0."""
        return self.stored_of(tally, [key]).get(key)

    def stored_of(self, tally: Tally, keys: Sequence[UUID | str]) -> dict[UUID | str, Sums]:
        """The sums of counter rows; those without a row are left out."""
        asked = {tally.row_key(key): key for key in keys}
        found: dict[UUID | str, dict[Sum, int]] = {}
        for cells in _by_row(tally):
            where, values = _rest(cells[0][1])
            columns = ", ".join((tally.key, *(cell.column for _, cell in cells)))
            query = self._prepare(
                f"SELECT {columns} FROM {self._table(tally.table)} WHERE {tally.key} IN ?{where}"
            )
            for rows in self._statements.partitions(query, list(asked), self._most, values):
                for row in rows:
                    none = dict.fromkeys(tally.cells, 0)
                    sums = found.setdefault(asked[row[tally.key]], none)
                    sums |= {each: row[cell.column] or 0 for each, cell in cells}
        return dict(found)

    def add(self, write: AddToCounter) -> None:
        """Send a claimed delta once, as one mutation; the driver never retries it.

        Raises `Unreachable` if the outcome is unknown, `Refused` if it was not applied.
        """
        batch = BatchStatement(batch_type=BatchType.COUNTER, retry_policy=FallthroughRetryPolicy())
        for cells in _by_row(write.tally):
            changed = [(each, cell) for each, cell in cells if write.deltas.get(each)]
            if not changed:
                continue
            where, values = _rest(changed[0][1])
            key, named = write.tally.key, write.tally.row_key(write.key)
            sets = ", ".join(f"{cell.column} = {cell.column} + ?" for _, cell in changed)
            deltas = tuple(write.deltas[each] for each, _ in changed)
            query = f"UPDATE {self._table(write.tally.table)} SET {sets} WHERE {key} = ?{where}"
            batch.add(self._prepare(query), (*deltas, named, *values))
        if not len(batch):
            raise NotGuarded("a correction that adds nothing")
        with translated(f"correcting {write.tally.table}"):
            self._session.execute(batch)

    # --- what they sum up

    def listed(self, mailboxid: UUID, first: int = 0, last: int = 2**63 - 1) -> Iterator[Listed]:
        """The messages of a mailbox in a range of UIDs; rows that name no message are left out."""
        mailbox, uid = self._family.listing.key
        query = self._prepare(
            f"SELECT {uid}, messageid, flagseen, fullcontentoctets"
            f" FROM {self._table(self._family.listing.table)}"
            f" WHERE {mailbox} = ? AND {uid} >= ? AND {uid} <= ?"
        )
        for row in self._statements.rows(query, (mailboxid, first, last)):
            self.pace.spend(1)
            yield from self._listed([row])

    def listed_in(
        self, mailboxids: Sequence[UUID], uids: UidRange, most: int
    ) -> dict[UUID, list[Listed] | None]:
        """The messages of mailboxes in a range of UIDs, ordered by UID; None for over ``most``."""
        mailbox, uid = self._family.listing.key
        query = self._prepare(
            f"SELECT {mailbox}, {uid}, messageid, flagseen, fullcontentoctets"
            f" FROM {self._table(self._family.listing.table)}"
            f" WHERE {mailbox} IN ? AND {uid} >= ? AND {uid} <= ? PER PARTITION LIMIT ?"
        )
        found = defaultdict[UUID, list[dict[str, Any]]](list)
        reads = self._statements.partitions(query, mailboxids, self._most, (*uids, most + 1))
        for rows in reads:
            self.pace.spend(len(rows))
            for row in rows:
                found[row[mailbox]].append(row)
        return {
            each: None if len(found[each]) > most else self._listed(found[each])
            for each in mailboxids
        }

    def _listed(self, rows: Iterable[dict[str, Any]]) -> list[Listed]:
        uid = self._family.listing.key[1]
        return [
            Listed(
                each[uid],
                each["messageid"],
                each["flagseen"] is True,
                each["fullcontentoctets"] or 0,
            )
            for each in rows
            if each["messageid"] is not None
        ]

    def owner(self, mailboxid: UUID) -> QuotaRoot | None:
        """The quota root of a mailbox, None when the mailbox does not exist."""
        return self._owners.owner(mailboxid)

    def owners_of(self, mailboxids: Sequence[UUID]) -> dict[UUID, QuotaRoot]:
        """The quota roots of mailboxes; those that do not exist are left out."""
        return self._owners.owners_of(mailboxids)

    def mailboxes(self, of: QuotaRoot) -> frozenset[UUID]:
        """The mailboxes that a user's paths name."""
        ((_, named),) = self.mailboxes_of([of])
        return named

    def mailboxes_of(
        self, roots: Sequence[QuotaRoot]
    ) -> Iterator[tuple[QuotaRoot, frozenset[UUID]]]:
        """The mailboxes that each user's paths name."""
        query = self._prepare(
            f"SELECT mailboxid FROM {self._table('mailboxpathv3')} WHERE namespace = ? AND user = ?"
        )
        answers = self._statements.each(query, ((each.namespace, each.user) for each in roots))
        for root, rows in zip(roots, answers, strict=True):
            yield root, frozenset(row["mailboxid"] for row in rows)

    # --- how

    def _table(self, table: str) -> str:
        return f"{self._keyspace}.{table}"

    def _prepare(self, query: str) -> Any:
        return self._statements.prepared(query, fetch_size=PAGE)


def _by_row(tally: Tally) -> Iterable[list[tuple[Sum, Cell]]]:
    """The tally's cells, grouped by the row that they are in."""
    rows: dict[tuple[tuple[str, str], ...], list[tuple[Sum, Cell]]] = {}
    for each, cell in tally.cells.items():
        rows.setdefault(tuple(sorted(cell.row.items())), []).append((each, cell))
    return rows.values()


def _rest(cell: Cell) -> tuple[str, tuple[object, ...]]:
    """The rest of a row's key, after the tally's own column."""
    return "".join(f" AND {column} = ?" for column in cell.row), tuple(cell.row.values())
