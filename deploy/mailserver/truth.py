"""Statements to imapuidtable, the truth: lightweight transactions, and deletes without uid."""

from collections.abc import Mapping, Sequence, Set
from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import ResponseFuture, ResultSet, Session

from deploy.mailserver.mail import Clock, Flags, Message, message_of_row
from deploy.mailserver.statements import Statements
from deploy.mailserver.variant import USUAL, Variant


class Truth:
    """Reads and writes imapuidtable as one mail server does; safe for threads."""

    def __init__(
        self, session: Session, keyspace: str, clock: Clock, variant: Variant = USUAL
    ) -> None:
        self._statements = Statements(session)
        self._table = f"{keyspace}.imapuidtable"
        self._clock = clock
        self._variant = variant

    def rows(self, messageid: UUID) -> list[Message]:
        """Every place where the message is, by a strong (serial) read where reads are strong."""
        cql = f"SELECT * FROM {self._table} WHERE messageid = ?"
        level = ConsistencyLevel.SERIAL if self._variant.strong_reads else ConsistencyLevel.QUORUM
        found = self._statements.start(cql, [messageid], level).result()
        return [message_of_row(row) for row in found]

    def insert(self, message: Message) -> None:
        """Add a row by a lightweight transaction, whose ballot is its write time, or by an update.

        An update adds the user flags to what may be there.
        """
        columns = message.columns()
        if not self._variant.strong_writes:
            names, values = _assignments(columns, message.flags.user, frozenset())
            self._update(names, values, message)
            return
        cells = {
            "messageid": message.messageid,
            "mailboxid": message.mailboxid,
            "uid": message.uid,
            "userflags": set(message.flags.user),
            **columns,
        }
        names, marks = ", ".join(cells), ", ".join("?" * len(cells))
        cql = f"INSERT INTO {self._table} ({names}) VALUES ({marks}) IF NOT EXISTS"
        self._statements.start(cql, list(cells.values())).result()

    def update_flags(self, message: Message, flags: Flags, modseq: int) -> bool:
        """Set all flags if the row still has the modseq of `message`; False where not.

        Where writes are not strong, nothing is asked, and the answer is always True.
        """
        columns = {"modseq": modseq, **flags.columns()}
        names, values = _assignments(
            columns, flags.user - message.flags.user, message.flags.user - flags.user
        )
        if not self._variant.strong_writes:
            self._update(names, values, message)
            return True
        answer = self._update(names, values, message, [message.modseq])
        return bool(answer.was_applied)

    def _update(
        self, assignments: str, values: list[object], message: Message, modseq: Sequence[int] = ()
    ) -> ResultSet:
        """Of the message's row; ``modseq`` is what it must have, if anything."""
        cql = (
            f"UPDATE {self._table} SET {assignments} "
            f"WHERE messageid = ? AND mailboxid = ? AND uid = ?{' IF modseq = ?' if modseq else ''}"
        )
        key = [message.messageid, message.mailboxid, message.uid]
        return self._statements.start(cql, [*values, *key, *modseq]).result()

    def start_delete(self, message: Message) -> ResponseFuture:
        """Send the delete by message and mailbox, without uid; do not wait for the answer."""
        cql = f"DELETE FROM {self._table} USING TIMESTAMP ? WHERE messageid = ? AND mailboxid = ?"
        return self._statements.start(
            cql, [self._clock.now_us(), message.messageid, message.mailboxid]
        )


def _assignments(
    columns: Mapping[str, object], added: Set[str], removed: Set[str]
) -> tuple[str, list[object]]:
    """What follows SET, and its values: the columns, and user flags as what changes in them."""
    assignments = [f"{column} = ?" for column in columns]
    values = list(columns.values())
    for sign, elements in (("+", added), ("-", removed)):
        if elements:
            assignments.append(f"userflags = userflags {sign} ?")
            values.append(set(elements))
    return ", ".join(assignments), values
