"""A mail server that writes messages to Cassandra as James does, in James's order.

Each change goes to the truth (imapuidtable) first and to its projection (messageidtable)
next; only a delete goes to both in parallel. The index tables and counters of a mailbox
come after these two, where a later piece of this project adds them.
"""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from cassandra.cluster import Session
from cassandra.util import uuid_from_time

from deploy.demo.faults import Faults
from deploy.demo.history import ProjectionWrite, Statement
from deploy.demo.mail import Clock, Content, Flags, Message, Numbers
from deploy.demo.projection import Projection
from deploy.demo.statements import Statements
from deploy.demo.truth import Truth

UIDVALIDITY = 1


class MessageGoneError(Exception):
    """The message is no longer at this place: somebody deleted it meanwhile."""


class MailServer:
    """One mail server process. May be used from several threads.

    Servers that share mailboxes share `numbers`. Every operation raises what
    Projection.send raises when its projection statement fails; the truth is then written.
    """

    def __init__(
        self,
        session: Session,
        keyspace: str,
        *,
        numbers: Numbers | None = None,
        clock: Clock | None = None,
        faults: Faults | None = None,
    ) -> None:
        clock = clock or Clock()
        self._keyspace = keyspace
        self._numbers = numbers or Numbers()
        self._statements = Statements(session)
        self._truth = Truth(session, keyspace, clock)
        self._projection = Projection(session, keyspace, clock, faults or Faults())

    def create_mailbox(self, user: str, name: str) -> UUID:
        """Create a mailbox: first its path, by a lightweight transaction, then itself."""
        mailboxid = new_timeuuid()
        self._statements.start(
            f"INSERT INTO {self._keyspace}.mailboxpathv3 "
            "(namespace, user, mailboxname, mailboxid, uidvalidity) "
            "VALUES (?, ?, ?, ?, ?) IF NOT EXISTS",
            ["#private", user, name, mailboxid, UIDVALIDITY],
        ).result()
        self._statements.start(
            f"INSERT INTO {self._keyspace}.mailbox (id, mailboxbase, name, uidvalidity) "
            "VALUES (?, ?, ?, ?)",
            [mailboxid, ("#private", user), name, UIDVALIDITY],
        ).result()
        return mailboxid

    def places(self, messageid: UUID) -> list[Message]:
        """Every mailbox and uid that holds the message, read strongly from the truth."""
        return self._truth.rows(messageid)

    def append(self, mailboxid: UUID, content: Content, flags: Flags) -> Message:
        """Store a new message in a mailbox."""
        return self._add("append", content, mailboxid, flags)

    def copy(self, message: Message, mailboxid: UUID) -> Message:
        """Copy to a mailbox, perhaps its own: then one messageid has two uids there."""
        return self._add("copy", message.content, mailboxid, message.flags)

    def move(self, message: Message, mailboxid: UUID) -> Message:
        """Move to another mailbox: copy there, then delete here."""
        moved = self._add("move", message.content, mailboxid, message.flags)
        self._remove("move", message)
        return moved

    def set_flags(self, message: Message, flags: Flags) -> Message:
        """Replace the flags; the projection is sent only what changed, and is not retried.

        Raises MessageGoneError where the message is no longer at its place.
        """
        current = message
        while True:
            modseq = self._numbers.next_modseq(message.mailboxid)
            if self._truth.update_flags(current, flags, modseq):
                break
            current = self._reread(current)
        changed = replace(current, flags=flags, modseq=modseq)
        self._projection.send(flags_write(current, changed))
        return changed

    def expunge(self, message: Message) -> None:
        """Delete for good. The truth loses all uids that the message has in this mailbox."""
        self._remove("expunge", message)

    def _add(self, operation: str, content: Content, mailboxid: UUID, flags: Flags) -> Message:
        message = Message(
            content=content,
            mailboxid=mailboxid,
            uid=self._numbers.next_uid(mailboxid),
            modseq=self._numbers.next_modseq(mailboxid),
            flags=Flags(flags.system | {"recent"}, flags.user),
            save_date=now_ms(),
        )
        self._truth.insert(message)
        self._projection.send(insert_write(operation, message))
        return message

    def _remove(self, operation: str, message: Message) -> None:
        truth_deleted = self._truth.start_delete(message)
        try:
            self._projection.send(delete_write(operation, message))
        finally:
            truth_deleted.result()

    def _reread(self, message: Message) -> Message:
        for found in self.places(message.messageid):
            if (found.mailboxid, found.uid) == (message.mailboxid, message.uid):
                return found
        raise MessageGoneError(f"message {message.messageid} left uid {message.uid}")


def insert_write(operation: str, message: Message) -> ProjectionWrite:
    """The projection's statement for a new row: every column."""
    return ProjectionWrite(
        statement=Statement.INSERT,
        operation=operation,
        messageid=message.messageid,
        mailboxid=message.mailboxid,
        uid=message.uid,
        cells={"messageid": message.messageid, **message.columns()},
        added=message.flags.user,
    )


def flags_write(before: Message, after: Message) -> ProjectionWrite:
    """The projection's statement for a flag change: changed cells, modseq, set elements."""
    old, new = before.columns(), after.columns()
    return ProjectionWrite(
        statement=Statement.FLAGS,
        operation="flags",
        messageid=after.messageid,
        mailboxid=after.mailboxid,
        uid=after.uid,
        cells={column: value for column, value in new.items() if value != old[column]},
        added=after.flags.user - before.flags.user,
        removed=before.flags.user - after.flags.user,
    )


def delete_write(operation: str, message: Message) -> ProjectionWrite:
    """The projection's statement for a removed row."""
    return ProjectionWrite(
        statement=Statement.DELETE,
        operation=operation,
        messageid=message.messageid,
        mailboxid=message.mailboxid,
        uid=message.uid,
    )


def new_timeuuid() -> UUID:
    """A version 1 UUID of now, different on every call from any thread."""
    timeuuid: UUID = uuid_from_time(datetime.now(UTC))
    return timeuuid


def now_ms() -> datetime:
    """Now, to the millisecond that a Cassandra timestamp keeps."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
