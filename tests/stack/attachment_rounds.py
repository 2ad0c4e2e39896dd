"""Attachments for rounds without a stream: what James writes, with its write times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cassandra.cluster import Session

from reconcilers.declared.attachments import id_as_uuid
from reconcilers.words.model import KeyValue, Slot, Wake
from streaming.steps.contents import ContentReads
from tests.stack.rounds import Rounds

BEFORE_CONTENT = "before content is read"
"""Where a round can be stopped, beside each `tests.stack.rounds.Point`."""


@dataclass
class Mail:
    """James's tables, as it writes them; ``at`` is µs. The next round looks at what was written."""

    session: Session
    keyspace: str
    rounds: Rounds

    # --- references

    def refer(self, name: str, message: UUID, at: int) -> None:
        self._run(
            "INSERT INTO $mail.attachmentmessageid (attachmentidasuuid, messageid, attachmentid)"
            f" VALUES (%s, %s, %s) USING TIMESTAMP {at}",
            *(id_as_uuid(name), str(message), name),
        )
        self._named(name, message)

    def forget(self, name: str, message: UUID, at: int) -> None:
        self._run(
            f"DELETE FROM $mail.attachmentmessageid USING TIMESTAMP {at}"
            " WHERE attachmentidasuuid = %s AND messageid = %s",
            *(id_as_uuid(name), str(message)),
        )
        self._named(name, message)

    def references(self, name: str) -> set[UUID]:
        """The messages to which an attachment refers."""
        rows: Any = self._run(
            "SELECT messageid FROM $mail.attachmentmessageid WHERE attachmentidasuuid = %s",
            id_as_uuid(name),
        )
        return {UUID(row.messageid) for row in rows}

    # --- rows of attachments

    def store(self, name: str, message: UUID | None, at: int, blob: str = "blob") -> None:
        """The row of an attachment, in one INSERT, with or without its message."""
        cells = {"id": name, "blobid": blob, "size": 7, "message_id": message}
        given = {column: cell for column, cell in cells.items() if cell is not None}
        self._run(
            f"INSERT INTO $mail.attachmentv2 (idasuuid, {', '.join(given)})"
            f" VALUES (%s{', %s' * len(given)}) USING TIMESTAMP {at}",
            *(id_as_uuid(name), *given.values()),
        )
        self._named(name, message)

    def discard(self, name: str, message: UUID, at: int) -> None:
        """Delete the row of an attachment."""
        self._run(
            f"DELETE FROM $mail.attachmentv2 USING TIMESTAMP {at} WHERE idasuuid = %s",
            id_as_uuid(name),
        )
        self._named(name, message)

    def row(self, name: str) -> tuple[Any, ...] | None:
        """Id, blob, size and message of an attachment's row, None without one."""
        found: Any = self._run(
            "SELECT id, blobid, size, message_id FROM $mail.attachmentv2 WHERE idasuuid = %s",
            id_as_uuid(name),
        )
        row = found.one()
        return None if row is None else tuple(row)

    # --- messages

    def fill(self, message: UUID, names: Sequence[str], at: int) -> None:
        """Content and list, in one statement."""
        listed = ", ".join(f"{{id: '{each}', isinline: false}}" for each in names)
        self._run(
            f"UPDATE $mail.messagev3 USING TIMESTAMP {at} SET fullcontentoctets = 9,"
            f" attachments = [{listed}] + attachments WHERE messageid = %s",
            message,
        )
        self._list_changed(message)

    def empty(self, message: UUID, at: int) -> None:
        self._run(f"DELETE FROM $mail.messagev3 USING TIMESTAMP {at} WHERE messageid = %s", message)
        self._list_changed(message)

    def place(self, message: UUID, uid: int) -> None:
        self._run(
            "INSERT INTO $mail.imapuidtable (messageid, mailboxid, uid, modseq)"
            " VALUES (%s, %s, %s, 1) IF NOT EXISTS",
            *(message, message, uid),
        )

    def displace(self, message: UUID) -> None:
        self._run("DELETE FROM $mail.imapuidtable WHERE messageid = %s", message)

    # --- keys

    def slot(self, name: str, message: UUID) -> Slot:
        """The place of an attachment of a message, in the family of the rounds."""
        return Slot(*(each for each in self._key(id_as_uuid(name), message) if each))

    def _named(self, name: str, message: UUID | None) -> None:
        self.rounds.due.append(Wake(self._key(id_as_uuid(name), message), message))

    def _list_changed(self, message: UUID) -> None:
        self.rounds.due.append(Wake(self._key(None, message), message, from_truth=True))

    def _key(self, attachment: UUID | None, message: UUID | None) -> tuple[KeyValue | None, ...]:
        parts = {
            "attachmentidasuuid": attachment,
            "idasuuid": attachment,
            "message": None if message is None else str(message),
        }
        return tuple(parts[each.name] for each in self.rounds.ground.family.key)

    def _run(self, cql: str, *values: object) -> Any:
        return self.session.execute(cql.replace("$mail", self.keyspace), values)


@dataclass
class Asking:
    """The real content, asked after a stop."""

    reads: ContentReads
    stop: Callable[[str], None]

    def having_content(self, sources: Sequence[KeyValue]) -> Any:
        self.stop(BEFORE_CONTENT)
        return self.reads.having_content(sources)

    def having_owner(self, sources: Sequence[KeyValue]) -> Any:
        return self.reads.having_owner(sources)

    def having_user(self, things: Sequence[KeyValue]) -> Any:
        return self.reads.having_user(things)
