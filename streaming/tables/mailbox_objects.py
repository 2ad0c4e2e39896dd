"""Reads `mailbox` and `mailboxpathv3`: whole tables, and single rows at serial consistency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from cassandra.cluster import Session

from reconcilers.mailboxes.rows import UIDS, MailboxPath, MailboxRow, PathRow, Sides
from streaming.settings import CassandraSettings
from streaming.tables.rate_limit import RateLimiter
from streaming.tables.session import levels_of
from streaming.tables.statement_cache import StatementCache

ROWS_A_PAGE = 5_000
OF_MAILBOX = (
    "SELECT id, mailboxbase, name, uidvalidity, writetime(mailboxbase) AS w1,"
    " writetime(name) AS w2, writetime(uidvalidity) AS w3 FROM {}.mailbox"
)
OF_PATHS = (
    "SELECT namespace, user, mailboxname, mailboxid, uidvalidity, writetime(mailboxid) AS w1,"
    " writetime(uidvalidity) AS w2 FROM {}.mailboxpathv3"
)
OF_MESSAGES = (
    "SELECT mailboxid FROM {}.messageidtable WHERE mailboxid = ? LIMIT 1",
    f"SELECT mailboxid FROM {{}}.{UIDS} WHERE mailboxid = ?",
)
AT_ID = " WHERE id = ?"
AT_PATH = " WHERE namespace = ? AND user = ? AND mailboxname = ?"
Values = tuple[object, ...]


class MailboxObjects:
    """Reads both tables of one keyspace, at most ``rows_per_second``. Not thread-safe.

    Every method raises `reconcilers.words.errors.Retryable`, or `Refused` if a table may not be
    read.
    """

    def __init__(self, session: Session, settings: CassandraSettings, rows_per_second: int) -> None:
        self._statements = StatementCache(session)
        self._of_messages = [each.format(settings.keyspace) for each in OF_MESSAGES]
        self._of_mailbox = OF_MAILBOX.format(settings.keyspace)
        self._of_paths = OF_PATHS.format(settings.keyspace)
        self._serial = levels_of(settings).serial
        self._pace = RateLimiter(rows_per_second)

    def mailboxes(self) -> Iterator[MailboxRow]:
        """Every row of `mailbox`, page by page."""
        return map(_mailbox, self._scan(self._of_mailbox))

    def paths(self) -> Iterator[PathRow]:
        """Every row of `mailboxpathv3`, page by page."""
        return map(_path, self._scan(self._of_paths))

    def look(self, ids: Iterable[UUID], paths: Iterable[MailboxPath]) -> Sides:
        """The rows at these keys at serial consistency, the mailboxes first (`rows.Sides`)."""
        at, places = list(ids), list(paths)
        rows_of = self._at(self._of_mailbox + AT_ID, [(each,) for each in at])
        mailboxes = [next(map(_mailbox, rows), None) for rows in rows_of]
        keys: list[Values] = [(each.namespace, each.user, each.name) for each in places]
        rows_of = self._at(self._of_paths + AT_PATH, keys)
        registered = [next(map(_path, rows), None) for rows in rows_of]
        return Sides(
            dict(zip(at, mailboxes, strict=True)), dict(zip(places, registered, strict=True))
        )

    def with_messages(self, ids: Iterable[UUID]) -> frozenset[UUID]:
        """Those of these mailboxes that list a message, or have ever given one a uid.

        The row that lists a message is a projection: its write may have failed.
        """
        keys: list[Values] = [(each,) for each in ids]
        rows = (rows for query in self._of_messages for rows in self._at(query, keys))
        return frozenset(row["mailboxid"] for found in rows for row in found)

    def _scan(self, query: str) -> Iterator[dict[str, Any]]:
        statement = self._statements.prepared(query, fetch_size=ROWS_A_PAGE)
        for row in self._statements.rows(statement, ()):
            self._pace.spend(1)
            yield row

    def _at(self, query: str, keys: list[Values]) -> list[list[dict[str, Any]]]:
        statement = self._statements.prepared(query, consistency_level=self._serial)
        return list(self._statements.each(statement, keys))


def _mailbox(row: dict[str, Any]) -> MailboxRow:
    base, name = row["mailboxbase"], row["name"]
    whole = base is not None and base.namespace is not None and name is not None
    path = MailboxPath(base.namespace, base.user or "", name) if whole else None
    return MailboxRow(row["id"], path, row["uidvalidity"], (row["w1"], row["w2"], row["w3"]))


def _path(row: dict[str, Any]) -> PathRow:
    path = MailboxPath(row["namespace"], row["user"], row["mailboxname"])
    return PathRow(path, row["mailboxid"], row["uidvalidity"], (row["w1"], row["w2"]))
