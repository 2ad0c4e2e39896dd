"""A mail server that writes messages to Cassandra as James does, in James's order.

Each change goes to the truth (imapuidtable) first and to its projection (messageidtable)
next; only a delete goes to both in parallel. The index tables and the mailbox's counters come
with the projection of a new message, and after that of any other change. When all of it went
well, a listener counts the user's quota, and another deletes the content of a message that is
nowhere any more. Content is there before the truth's first row.

Lists of rights and mailboxes are changed in sharing.py and mailboxes.py.
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from cassandra.cluster import Session
from cassandra.util import uuid_from_time

from deploy.mailserver.contents import ContentStore
from deploy.mailserver.counter_statements import Counters
from deploy.mailserver.counters import CURRENT_QUOTA, MAILBOX_COUNTERS, counter_write
from deploy.mailserver.faults import Faults, StatementTimeoutError
from deploy.mailserver.history import ProjectionWrite, Statement
from deploy.mailserver.indexes import index_writes
from deploy.mailserver.mail import Change, Clock, Content, Flags, Message, Numbers
from deploy.mailserver.mailboxes import Mailboxes
from deploy.mailserver.projection import ProjectionWriter
from deploy.mailserver.rights import AccessList
from deploy.mailserver.statements import SERVER_TROUBLE
from deploy.mailserver.truth import Truth
from deploy.mailserver.variant import USUAL, Variant


class MessageGoneError(Exception):
    """The message is no longer at this place: somebody deleted it meanwhile."""


class MailServer:
    """One mail server process. May be used from several threads.

    Servers that share mailboxes share `numbers`. Every operation raises what
    ProjectionWriter.send raises when a statement to messageidtable or to an index fails; the truth
    is then written.
    """

    def __init__(
        self,
        session: Session,
        keyspace: str,
        *,
        numbers: Numbers | None = None,
        clock: Clock | None = None,
        faults: Faults | None = None,
        variant: Variant = USUAL,
    ) -> None:
        clock, faults = clock or Clock(), faults or Faults()
        self._numbers = numbers or Numbers()
        self._truth = Truth(session, keyspace, clock, variant)
        self._projection = ProjectionWriter(session, keyspace, clock, faults)
        self._contents = ContentStore(session, keyspace, self._projection, variant.attachments)
        self._mailboxes = Mailboxes(session, keyspace, self._projection)
        self._counters = Counters(session, keyspace, faults)

    def create_mailbox(self, user: str, name: str) -> UUID:
        """Create a mailbox."""
        mailboxid = new_timeuuid()
        self._mailboxes.create(mailboxid, user, name)
        return mailboxid

    def rename_mailbox(self, mailboxid: UUID, name: str) -> None:
        """Give a mailbox another name, which must be free."""
        self._mailboxes.rename(mailboxid, name)

    def delete_mailbox(self, mailboxid: UUID) -> None:
        """Delete a mailbox that holds no message, with all that belongs to it."""
        self._mailboxes.delete(mailboxid)

    def share(self, mailboxid: UUID, name: str, letters: str) -> None:
        """Give a name these rights in a mailbox, and no others; none take them away.

        A name is a user, a group (`$`), or either with `-`: what it may not.
        """
        self._mailboxes.sharing.grant(mailboxid, name, letters)

    def share_with(self, mailboxid: UUID, granted: AccessList) -> None:
        """Replace the whole list of a mailbox."""
        self._mailboxes.sharing.replace(mailboxid, granted)

    def places(self, messageid: UUID) -> list[Message]:
        """Every mailbox and uid that holds the message, read strongly from the truth."""
        return self._truth.rows(messageid)

    def append(self, mailboxid: UUID, content: Content, flags: Flags) -> Message:
        """Store a new message in a mailbox."""
        self._contents.store(content)
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
        self._follow(Change("flags", current, changed))
        return changed

    def expunge(self, message: Message) -> None:
        """Delete for good. The truth loses all uids that the message has in this mailbox."""
        self._remove("expunge", message)
        if not self._truth.rows(message.messageid):
            self._contents.delete(message.messageid)

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
        self._follow(Change(operation, None, message), insert_write(operation, message))
        return message

    def _remove(self, operation: str, message: Message) -> None:
        truth_deleted = self._truth.start_delete(message)
        try:
            self._projection.send(delete_write(operation, message))
        finally:
            truth_deleted.result()
        self._follow(Change(operation, message, None))

    def _follow(self, change: Change, *others: ProjectionWrite) -> None:
        """Indexes and counters (and others in parallel with them); then the event, for the quota.

        An operation that failed has no event.
        """
        mailboxid = change.message.mailboxid
        writes = (*others, *index_writes(change))
        sends = [functools.partial(self._projection.send, write) for write in writes]
        counters = counter_write(MAILBOX_COUNTERS, change, mailboxid)
        if counters is not None:
            sends.append(functools.partial(self._counters.send, counters))
        in_parallel(sends)
        root = self._mailboxes.quota_root_of(mailboxid)
        quota = counter_write(CURRENT_QUOTA, change, root) if root is not None else None
        if quota is not None:
            self._counters.send(quota)

    def _reread(self, message: Message) -> Message:
        for found in self.places(message.messageid):
            if (found.mailboxid, found.uid) == (message.mailboxid, message.uid):
                return found
        raise MessageGoneError(f"message {message.messageid} left uid {message.uid}")


def in_parallel(sends: Iterable[Callable[[], None]]) -> None:
    """All of them, even where some fail; then raises the first error, as James does.

    They go one after the other: what is lost is the same. A process that dies sends no more.
    """
    errors = []
    for send in sends:
        try:
            send()
        except (StatementTimeoutError, *SERVER_TROUBLE) as error:
            errors.append(error)
    if errors:
        raise errors[0]


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
