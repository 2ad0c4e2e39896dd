"""Mailbox objects of one user, written by plain CQL."""

import uuid
from collections.abc import Mapping
from uuid import UUID

from cassandra.cluster import Session

NAMESPACE, USER = "#private", "o'neil@example.org"
Tables = tuple[dict[UUID, str | None], dict[str, UUID]]
"""The names of mailboxes by id, and the ids of paths by name."""


class Boxes:
    """A keyspace with mailbox objects of one user, written by plain CQL."""

    def __init__(self, session: Session, keyspace: str) -> None:
        self.session, self.keyspace = session, keyspace
        self.ids = {name: uuid.uuid1() for name in "abcdefghijklm"}

    def mailbox(self, id_: str, name: str) -> None:
        self.session.execute(
            f"INSERT INTO {self.keyspace}.mailbox (id, mailboxbase, name, uidvalidity)"
            f" VALUES (%s, {{namespace: %s, user: %s}}, %s, 7)",
            (self.ids[id_], NAMESPACE, USER, name),
        )

    def path(self, name: str, id_: str) -> None:
        self.session.execute(
            f"INSERT INTO {self.keyspace}.mailboxpathv3"
            " (namespace, user, mailboxname, mailboxid, uidvalidity)"
            " VALUES (%s, %s, %s, %s, 7) IF NOT EXISTS",
            (NAMESPACE, USER, name, self.ids[id_]),
        )

    def message(self, id_: str) -> None:
        self.session.execute(
            f"INSERT INTO {self.keyspace}.messageidtable (mailboxid, uid, messageid)"
            " VALUES (%s, 1, %s)",
            (self.ids[id_], uuid.uuid1()),
        )

    def uid(self, id_: str) -> None:
        """The first uid that James gives in a mailbox (`CassandraUidProvider`)."""
        self.session.execute(
            f"INSERT INTO {self.keyspace}.messagecounter (mailboxid, nextuid) VALUES (%s, 1)"
            " IF NOT EXISTS",
            (self.ids[id_],),
        )

    def plant(self) -> None:
        """One conflict of each kind, an orphan path whose mailbox has mail, and a right mailbox."""
        self.mailbox("a", "INBOX")
        self.path("INBOX", "a")
        self.path("orphan", "b")
        self.mailbox("c", "missing")
        self.mailbox("d", "before")
        self.path("after", "d")
        self.mailbox("e", "one")
        self.path("one", "e")
        self.path("other", "e")
        self.mailbox("f", "g's")
        self.path("f's", "f")
        self.mailbox("g", "f's")
        self.path("g's", "g")
        self.mailbox("h", "wanted")
        self.path("wanted", "i")
        self.mailbox("j", "shared")
        self.mailbox("k", "shared")
        self.path("shared", "j")
        self.path("with mail", "l")
        self.message("l")
        self.session.execute(
            f"UPDATE {self.keyspace}.mailbox SET uidvalidity = 7 WHERE id = %s", (self.ids["m"],)
        )

    def tables(self) -> Tables:
        mailboxes = self.session.execute(f"SELECT id, name FROM {self.keyspace}.mailbox")
        paths = self.session.execute(
            f"SELECT mailboxname, mailboxid FROM {self.keyspace}.mailboxpathv3"
        )
        return {row[0]: row[1] for row in mailboxes}, {row[0]: row[1] for row in paths}

    def expected(self, mailboxes: Mapping[str, str | None], paths: Mapping[str, str]) -> Tables:
        by_id = {self.ids[id_]: name for id_, name in mailboxes.items()}
        return by_id, {name: self.ids[id_] for name, id_ in paths.items()}

    def no_mailbox(self, id_: str) -> None:
        """Delete the row of `mailbox`."""
        self.session.execute(f"DELETE FROM {self.keyspace}.mailbox WHERE id = %s", (self.ids[id_],))

    def no_path(self, name: str) -> None:
        """Delete a registration, as James does."""
        self.session.execute(
            f"DELETE FROM {self.keyspace}.mailboxpathv3 WHERE namespace = %s AND user = %s"
            " AND mailboxname = %s IF EXISTS",
            (NAMESPACE, USER, name),
        )
