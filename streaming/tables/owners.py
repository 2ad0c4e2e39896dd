"""The quota roots that own mailboxes, from James's table `mailbox`."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from cassandra.cluster import Session

from reconcilers.declared.tally import QuotaRoot
from streaming.settings import CassandraSettings
from streaming.tables.statement_cache import StatementCache

TIME_BASED = 1
"""The version of the UUIDs of mailboxes."""


class MailboxOwners:
    """Reads owners by the ids of mailboxes, in one keyspace. Not thread-safe."""

    def __init__(self, session: Session, settings: CassandraSettings) -> None:
        self._statements = StatementCache(session)
        self._query = f"SELECT id, mailboxbase FROM {settings.keyspace}.mailbox WHERE id IN ?"
        self._most = settings.partitions_per_read

    def owner(self, mailboxid: UUID) -> QuotaRoot | None:
        """The quota root of a mailbox, None when the mailbox does not exist.

        Raises `reconcilers.words.errors.Retryable`, or `Refused` if the table may not be read.
        """
        return self.owners_of([mailboxid]).get(mailboxid)

    def owners_of(self, mailboxids: Sequence[UUID]) -> dict[UUID, QuotaRoot]:
        """The quota roots of mailboxes; those that do not exist are left out. Raises the same."""
        # an attachment is none; Cassandra would refuse the read
        asked = [each for each in mailboxids if each.version == TIME_BASED]
        query = self._statements.prepared(self._query)
        found = (
            row for rows in self._statements.partitions(query, asked, self._most) for row in rows
        )
        return {
            row["id"]: QuotaRoot(row["mailboxbase"].namespace, row["mailboxbase"].user)
            for row in found
            if row["mailboxbase"] is not None
        }
