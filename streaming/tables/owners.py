"""Whose a mailbox is, as James's table of mailboxes says."""

from __future__ import annotations

from uuid import UUID

from cassandra.cluster import Session

from reconcilers.declared.tally import QuotaRoot
from streaming.settings import CassandraSettings
from streaming.tables.statement_cache import StatementCache


class MailboxOwners:
    """Read by a mailbox's id, in one keyspace. Not shared between threads."""

    def __init__(self, session: Session, settings: CassandraSettings) -> None:
        self._statements = StatementCache(session)
        self._query = f"SELECT mailboxbase FROM {settings.keyspace}.mailbox WHERE id = ?"

    def owner(self, mailboxid: UUID) -> QuotaRoot | None:
        """Whose it is, None when it does not exist.

        Raises `reconcilers.words.errors.Retryable`, or `Refused` where the table may not be read.
        """
        for row in self._statements.rows(self._statements.prepared(self._query), (mailboxid,)):
            if row["mailboxbase"] is not None:
                return QuotaRoot(row["mailboxbase"].namespace, row["mailboxbase"].user)
        return None
