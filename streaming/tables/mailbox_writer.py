"""The only code that writes `mailbox` and `mailboxpathv3`: the writes of a fix, and no others.

Each is a lightweight transaction on what the fix has seen. A row that somebody changed meanwhile
stays as it is. Only `streaming.commands.mailboxes` may import this module (pyproject.toml).
"""

from __future__ import annotations

from uuid import UUID

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from reconcilers.mailboxes.plan import (
    AddMailbox,
    AddPath,
    DeleteMailbox,
    DeletePath,
    MailboxWrite,
    RightSide,
    SetMailboxPath,
    SetPathId,
)
from reconcilers.mailboxes.rows import MAILBOX, PATHS, MailboxPath
from reconcilers.words.errors import NotGuarded
from streaming.tables.statement_cache import StatementCache

Base = tuple[str, str]
"""A value of the type `mailbox_base`: namespace and user."""
Bindable = str | int | UUID | Base
AT_PATH = "namespace = ? AND user = ? AND mailboxname = ?"


def as_cql(write: MailboxWrite, keyspace: str) -> tuple[str, tuple[Bindable, ...]]:
    """The statement with markers, and its values."""
    mailbox, paths = f"{keyspace}.{MAILBOX}", f"{keyspace}.{PATHS}"
    match write:
        case AddPath(path, id_, uidvalidity):
            columns = "(namespace, user, mailboxname, mailboxid, uidvalidity)"
            query = f"INSERT INTO {paths} {columns} VALUES (?, ?, ?, ?, ?) IF NOT EXISTS"
            return query, (*_key(path), id_, uidvalidity)
        case SetPathId(path, seen, id_, uidvalidity):
            query = f"UPDATE {paths} SET mailboxid = ?, uidvalidity = ? WHERE {AT_PATH}"
            return f"{query} IF mailboxid = ?", (id_, uidvalidity, *_key(path), seen)
        case DeletePath(path, seen):
            return f"DELETE FROM {paths} WHERE {AT_PATH} IF mailboxid = ?", (*_key(path), seen)
        case AddMailbox(id_, path, uidvalidity):
            columns = "(id, mailboxbase, name, uidvalidity)"
            query = f"INSERT INTO {mailbox} {columns} VALUES (?, ?, ?, ?) IF NOT EXISTS"
            return query, (id_, *_base_and_name(path), uidvalidity)
        case SetMailboxPath(id_, before, path):
            query = f"UPDATE {mailbox} SET mailboxbase = ?, name = ? WHERE id = ?"
            condition = "IF mailboxbase = ? AND name = ?"
            return f"{query} {condition}", (*_base_and_name(path), id_, *_base_and_name(before))
        case DeleteMailbox(id_, before):
            query = f"DELETE FROM {mailbox} WHERE id = ? IF mailboxbase = ? AND name = ?"
            return query, (id_, *_base_and_name(before))


def as_text(write: MailboxWrite, keyspace: str) -> str:
    """The statement with its values, as `cqlsh` takes it."""
    query, values = as_cql(write, keyspace)
    first, *rest = query.split("?")
    pairs = zip(values, rest, strict=True)
    return first + "".join(f"{_literal(value)}{text}" for value, text in pairs) + ";"


class MailboxWriter:
    """Sends writes to the side that is not right, in one keyspace. Not thread-safe."""

    def __init__(self, session: Session, keyspace: str, right: RightSide) -> None:
        self._statements, self._session = StatementCache(session), session
        self._keyspace, self._right = keyspace, right

    def send(self, write: MailboxWrite) -> bool:
        """Send one write; False if the row was no longer as it was seen.

        Raises `NotGuarded` if it is to the right side; `reconcilers.words.errors.Retryable` (the
        write may have been applied), or `Refused`.
        """
        if not self._right.lets_write(write.table):
            raise NotGuarded(f"mailboxes.right is {self._right}: {write.table} is not written")
        query, values = as_cql(write, self._keyspace)
        statement = self._statements.prepared(query)
        with translated(f"writing {write.table}"):
            return bool(self._session.execute(statement, values).was_applied)


def _key(path: MailboxPath) -> tuple[str, str, str]:
    return path.namespace, path.user, path.name


def _base_and_name(path: MailboxPath) -> tuple[Base, str]:
    return (path.namespace, path.user), path.name


def _literal(value: Bindable) -> str:
    if isinstance(value, tuple):
        namespace, user = map(_literal, value)
        return f"{{namespace: {namespace}, user: {user}}}"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
