"""Statements to the two tables of mailboxes. Pure.

As in James 3.8.1: `CassandraMailboxPathV3DAO`, `CassandraMailboxDAO`.
"""

from collections.abc import Callable, Mapping

from deploy.mailserver.history import ELEMENT, Cells, ProjectionWrite, Statement

MAILBOXES = "mailboxes"
"""What the full comparison and the ledger call the two tables of mailboxes."""
UIDVALIDITY = 1
NAMESPACE = "#private"
NAME = "name"
"""The cell of the name in `mailbox`; each path of the mailbox is an element beside it."""

CELLS: Mapping[Statement, Callable[[str], Cells]] = {
    Statement.PATH: lambda _: {},
    Statement.NO_PATH: lambda _: {},
    Statement.MAILBOX: lambda name: {NAME: name},
    Statement.NO_MAILBOX: lambda _: {NAME: None},
}


def mailbox_statement(write: ProjectionWrite, keyspace: str, _: int) -> tuple[str, list[object]]:
    """The CQL of a write to mailbox or mailboxpathv3, and its values; Cassandra stamps it."""
    path = [NAMESPACE, write.uid, *write.added, *write.removed]
    match write.statement:
        case Statement.PATH:
            cql = (
                f"INSERT INTO {keyspace}.mailboxpathv3 "
                "(namespace, user, mailboxname, mailboxid, uidvalidity) "
                "VALUES (?, ?, ?, ?, ?) IF NOT EXISTS"
            )
            return cql, [*path, write.mailboxid, UIDVALIDITY]
        case Statement.NO_PATH:
            cql = (
                f"DELETE FROM {keyspace}.mailboxpathv3 "
                "WHERE namespace = ? AND user = ? AND mailboxname = ? IF EXISTS"
            )
            return cql, [*path]
        case Statement.MAILBOX:
            cql = (
                f"INSERT INTO {keyspace}.mailbox (id, mailboxbase, name, uidvalidity) "
                "VALUES (?, ?, ?, ?)"
            )
            owner = (NAMESPACE, write.uid)
            return cql, [write.mailboxid, owner, write.cells[NAME], UIDVALIDITY]
    return f"DELETE FROM {keyspace}.mailbox WHERE id = ?", [write.mailboxid]


def is_retried(write: ProjectionWrite) -> bool:
    """Whether James sends a statement again that failed: all but a new path, and a last one."""
    if write.statement is Statement.NO_PATH:
        return write.operation == "rename_mailbox"
    return write.statement is not Statement.PATH


def agree(mailbox: Cells) -> bool:
    """Whether a mailbox has the one path that its row names; without a row, whether it has none."""
    paths = {cell for cell in mailbox if cell != NAME}
    return paths == ({f"{ELEMENT}{mailbox[NAME]}"} if NAME in mailbox else set())
