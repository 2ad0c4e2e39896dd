"""Flags that mailboxes collect in one row, and that their messages have; only reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from cassandra.cluster import Session

from reconcilers.declared.family import Family, Projection
from streaming.settings import CassandraSettings
from streaming.tables.rate_limit import RateLimiter
from streaming.tables.statement_cache import StatementCache


class CollectedFlags:
    """One collecting projection, in one keyspace; reads at the settings' ``rows_per_second``."""

    def __init__(
        self, session: Session, settings: CassandraSettings, family: Family, projection: Projection
    ) -> None:
        self._statements = StatementCache(session)
        self._keyspace = settings.keyspace
        self._first = family.listing
        self._projection = projection
        self._column = str(projection.collects)
        self._pace = RateLimiter(settings.rows_per_second)

    def rows(self, mailboxid: UUID | None) -> Iterator[tuple[UUID, frozenset[str]]]:
        """The elements of one mailbox, or of each (None). Raises `Refused`, `Unreachable`."""
        (mailbox,) = self._projection.key
        query = f"SELECT {mailbox}, {self._column} FROM {self._table(self._projection)}"
        for row in self._read(query, mailbox, mailboxid):
            yield row[mailbox], frozenset(row[self._column] or ())

    def in_use(self, mailboxid: UUID) -> frozenset[str]:
        """The elements of all messages that a mailbox lists now; reads the whole mailbox."""
        found = set[str]()
        query = f"SELECT {self._column} FROM {self._table(self._first)}"
        for row in self._read(query, self._first.key[0], mailboxid):
            found.update(row[self._column] or ())
        return frozenset(found)

    def _table(self, projection: Projection) -> str:
        return f"{self._keyspace}.{projection.table}"

    def _read(self, query: str, mailbox: str, mailboxid: UUID | None) -> Iterator[dict[str, Any]]:
        values: tuple[object, ...] = ()
        if mailboxid is not None:
            query, values = f"{query} WHERE {mailbox} = ?", (mailboxid,)
        for row in self._statements.rows(self._statements.prepared(query), values):
            self._pace.spend(1)
            yield row
