"""Users' changes in two halves, truth and projection, with the statements of the mail server.

Each half is sent when a test says so, stamped by the clock of that user's server, and gives the
keys that change capture tells of it.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from cassandra.cluster import Session
from cassandra.util import uuid_from_time

from deploy.mailserver.history import ProjectionWrite
from deploy.mailserver.mail import Clock, Content, Flags, Message
from deploy.mailserver.mailserver import delete_write, flags_write, insert_write, new_timeuuid
from deploy.mailserver.projection import statement_of
from deploy.mailserver.statements import Statements
from deploy.mailserver.truth import Truth
from reconcilers.words.model import Kind, Micros, Slot, Wake

Half = Callable[[], list[Wake]]
TRUTH, PROJECTION = "imapuidtable", "messageidtable"
RIGHT = Flags(frozenset({"seen"}), frozenset({"work"}))
STALE = Flags(frozenset({"answered"}), frozenset({"stale"}))
"""What a faulty projection row shows instead of `RIGHT`."""


@dataclass(frozen=True)
class Change:
    """What a user does to one message: its statement to each table."""

    truth: Half
    projection: Half


def no_statement() -> list[Wake]:
    """The half of a change that sends nothing."""
    return []


def a_message(flags: Flags, born: Micros) -> Message:
    """A message of its own mailbox, made at this time (µs)."""
    chance = random.Random(born)
    made = datetime.fromtimestamp(born / 1e6, UTC)
    messageid: UUID = uuid_from_time(made)
    content = Content(messageid, made.replace(microsecond=0), 12, chance.randrange(99, 9999), "h")
    return Message(content, new_timeuuid(), chance.randrange(1, 999), modseq=3, flags=flags)


def slot_of(message: Message) -> Slot:
    return Slot(message.mailboxid, message.uid)


def a_difference(kind: Kind, message: Message, user: "User") -> list[Wake]:
    """Plant one: the message is in the truth (or was), and a statement to the projection failed."""
    heard = user.adds(message).truth()
    match kind:
        case Kind.DIFFERING_CELLS:
            heard += user.adds(replace(message, flags=STALE)).projection()
        case Kind.EXTRA_ROW:
            heard += user.adds(message).projection()
            heard += user.deletes(message).truth()
    return heard


class User:
    """A user of one mail server; ``clock`` stamps its statements, but for lightweight ones."""

    def __init__(self, session: Session, keyspace: str, clock: Callable[[], Micros]) -> None:
        self._statements = Statements(session)
        self._lightweight = Truth(session, keyspace, Clock())
        self._keyspace = keyspace
        self._clock = clock

    # --- changes

    def adds(self, message: Message) -> Change:
        """An append, a copy, a move to here."""
        return Change(
            lambda: self._add_to_truth(message),
            lambda: self._send(insert_write("append", message)),
        )

    def deletes(self, message: Message) -> Change:
        """The truth by message and mailbox, without UID."""
        return Change(
            lambda: self._delete_from_truth(message),
            lambda: self._send(delete_write("expunge", message)),
        )

    def sets_flags(self, before: Message, flags: Flags) -> Change:
        """The truth by a lightweight transaction, the projection by what changed."""
        after = replace(before, flags=flags, modseq=before.modseq + 1)
        return Change(
            lambda: self._change_truth(before, after),
            lambda: self._send(flags_write(before, after)),
        )

    def adds_again(self, message: Message) -> Change:
        """Deleted, and back at the same place."""
        gone, back = self.deletes(message), self.adds(message)
        return Change(
            lambda: gone.truth() + back.truth(),
            lambda: gone.projection() + back.projection(),
        )

    # --- statements

    def _add_to_truth(self, message: Message) -> list[Wake]:
        """As James does with strong writes off: stamped by the client."""
        at = self._clock()
        cells: dict[str, object] = message.columns()
        names = ", ".join(f"{name} = ?" for name in cells)
        self._statements.start(
            f"UPDATE {self._keyspace}.{TRUTH} USING TIMESTAMP ? SET {names},"
            " userflags = userflags + ? WHERE messageid = ? AND mailboxid = ? AND uid = ?",
            [at, *cells.values(), set(message.flags.user), *_truth_key(message)],
        ).result()
        return [_wake_of_truth(message, at)]

    def _change_truth(self, before: Message, after: Message) -> list[Wake]:
        assert self._lightweight.update_flags(before, after.flags, after.modseq)
        return [_wake_of_truth(before, None)]

    def _delete_from_truth(self, message: Message) -> list[Wake]:
        at = self._clock()
        self._statements.start(
            f"DELETE FROM {self._keyspace}.{TRUTH} USING TIMESTAMP ?"
            " WHERE messageid = ? AND mailboxid = ?",
            [at, message.messageid, message.mailboxid],
        ).result()
        wake = _wake_of_truth(message, at)
        return [replace(wake, key=(message.mailboxid, None), deleted_from=TRUTH, deleted_at=at)]

    def _send(self, write: ProjectionWrite) -> list[Wake]:
        at = self._clock()
        cql, values = statement_of(write, f"{self._keyspace}.{PROJECTION}")
        self._statements.start(cql, [at, *values]).result()
        messageid = write.cells.get("messageid")
        assert messageid is None or isinstance(messageid, UUID)
        wake = Wake((write.mailboxid, write.uid), messageid, at)
        deleted = cql.startswith("DELETE")
        return [replace(wake, deleted_from=PROJECTION, deleted_at=at) if deleted else wake]


def _truth_key(message: Message) -> tuple[UUID, UUID, int]:
    return message.messageid, message.mailboxid, message.uid


def _wake_of_truth(message: Message, at: Micros | None) -> Wake:
    return Wake((message.mailboxid, message.uid), message.messageid, at, from_truth=True)
