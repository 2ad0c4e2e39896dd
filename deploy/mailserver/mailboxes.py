"""How James writes mailboxes: the path by a lightweight transaction, the mailbox without one.

As in James 3.8.1: `CassandraMailboxMapper`, `CassandraMailboxPathV3DAO`, `CassandraMailboxDAO`,
`DeleteMessageListener`.
"""

import contextlib
import functools
from typing import Any
from uuid import UUID

from cassandra.cluster import Session

from deploy.mailserver.counters import quota_root
from deploy.mailserver.faults import StatementTimeoutError
from deploy.mailserver.history import ProjectionWrite, Statement
from deploy.mailserver.mailbox_statements import CELLS, MAILBOXES
from deploy.mailserver.projection import ProjectionWriter
from deploy.mailserver.sharing import Sharing
from deploy.mailserver.statements import SERVER_TROUBLE, Statements

OF_A_MAILBOX = (
    "applicableflag",
    "firstunseen",
    "messagedeleted",
    "mailboxcounters",
    "mailboxrecents",
)
"""What is deleted after a mailbox, by its id."""


class Mailboxes:
    """Creates, renames and deletes mailboxes as one mail server does; safe for threads.

    Each operation raises what ProjectionWriter.send raises; what came before is then written.
    """

    def __init__(self, session: Session, keyspace: str, projection: ProjectionWriter) -> None:
        self._statements = Statements(session)
        self._keyspace = keyspace
        self._projection = projection
        self.sharing = Sharing(session, keyspace, projection)
        self.quota_root_of = functools.cache(self._read_quota_root)
        """Of the user whom a mailbox belongs to; None where there is no such mailbox."""

    def create(self, mailboxid: UUID, user: str, name: str) -> None:
        """First its path, then itself."""
        self._send("create_mailbox", Statement.PATH, mailboxid, user, name)
        self._send("create_mailbox", Statement.MAILBOX, mailboxid, user, name)

    def rename(self, mailboxid: UUID, name: str) -> None:
        """The new path, then the end of the old one, then the mailbox itself.

        The name must be free. A mailbox without a row is left as it is: James knows no such one.
        """
        if place := self._place(mailboxid):
            user, old = place
            self._send("rename_mailbox", Statement.PATH, mailboxid, user, name)
            self._send("rename_mailbox", Statement.NO_PATH, mailboxid, user, old)
            self._send("rename_mailbox", Statement.MAILBOX, mailboxid, user, name)

    def delete(self, mailboxid: UUID) -> None:
        """First its path, then itself; then a listener deletes its list and other rows.

        No user hears of an error of the listener. The mailbox must hold no message.
        """
        if place := self._place(mailboxid):
            self._send("delete_mailbox", Statement.NO_PATH, mailboxid, *place)
            self._send("delete_mailbox", Statement.NO_MAILBOX, mailboxid, *place)
        with contextlib.suppress(StatementTimeoutError, *SERVER_TROUBLE):
            self.sharing.delete(mailboxid)
        for table in OF_A_MAILBOX:
            cql = f"DELETE FROM {self._keyspace}.{table} WHERE mailboxid = ?"
            self._statements.start(cql, [mailboxid]).result()

    def _place(self, mailboxid: UUID) -> tuple[str, str] | None:
        """Whose it is and what it is called, by its own row."""
        mailbox = self._row(mailboxid)
        return (mailbox.mailboxbase.user, mailbox.name) if mailbox else None

    def _read_quota_root(self, mailboxid: UUID) -> str | None:
        mailbox = self._row(mailboxid)
        base = mailbox.mailboxbase if mailbox else None
        return quota_root(base.namespace, base.user) if base else None

    def _row(self, mailboxid: UUID) -> Any:
        cql = f"SELECT * FROM {self._keyspace}.mailbox WHERE id = ?"
        return self._statements.start(cql, [mailboxid]).result().one()

    def _send(
        self, operation: str, statement: Statement, mailboxid: UUID, user: str, name: str
    ) -> None:
        """A path is an element, so that a row knows all paths of its mailbox."""
        paths = frozenset({name})
        self._projection.send(
            ProjectionWrite(
                statement=statement,
                operation=operation,
                messageid=None,
                mailboxid=mailboxid,
                uid=user,
                cells=CELLS[statement](name),
                added=paths if statement is Statement.PATH else frozenset(),
                removed=paths if statement is Statement.NO_PATH else frozenset(),
                projection=MAILBOXES,
            )
        )
