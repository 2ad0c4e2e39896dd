"""The quota roots that own mailboxes, from James's table `mailbox`."""

from __future__ import annotations

from uuid import UUID

from cassandra.cluster import Session

from reconcilers.declared.tally import QuotaRoot
from streaming.settings import CassandraSettings
from streaming.tables.statement_cache import StatementCache

TIME_BASED = 1
"""The version of the UUIDs of mailboxes."""


class MailboxOwners:
    """Reads owners by a mailbox's id, in one keyspace. Not thread-safe."""

    def __init__(self, session: Session, settings: CassandraSettings) -> None:
        self._statements = StatementCache(session)
        self._query = f"SELECT mailboxbase FROM {settings.keyspace}.mailbox WHERE id = ?"

    def owner(self, mailboxid: UUID) -> QuotaRoot | None:
        """The quota root of a mailbox, None when the mailbox does not exist.

        Raises `reconcilers.words.errors.Retryable`, or `Refused` if the table may not be read.
        """
        if mailboxid.version != TIME_BASED:
            return None  # an attachment; Cassandra would refuse the read
        for row in self._statements.rows(self._statements.prepared(self._query), (mailboxid,)):
            if row["mailboxbase"] is not None:
                return QuotaRoot(row["mailboxbase"].namespace, row["mailboxbase"].user)
        return None
