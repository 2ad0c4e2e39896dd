"""Statements to imapuidtable, the truth: lightweight transactions, and deletes without uid."""

from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import ResponseFuture, Session

from deploy.mailserver.mail import Clock, Flags, Message, message_of_row
from deploy.mailserver.statements import Statements


class Truth:
    """Reads and writes imapuidtable as one mail server does; safe for threads."""

    def __init__(self, session: Session, keyspace: str, clock: Clock) -> None:
        self._statements = Statements(session)
        self._table = f"{keyspace}.imapuidtable"
        self._clock = clock

    def rows(self, messageid: UUID) -> list[Message]:
        """Every place where the message is, by a strong (serial) read."""
        cql = f"SELECT * FROM {self._table} WHERE messageid = ?"
        found = self._statements.start(cql, [messageid], ConsistencyLevel.SERIAL).result()
        return [message_of_row(row) for row in found]

    def insert(self, message: Message) -> None:
        """Add a row by a lightweight transaction; its write time is the ballot's."""
        columns = message.columns()
        values = {
            "messageid": message.messageid,
            "mailboxid": message.mailboxid,
            "uid": message.uid,
            "userflags": set(message.flags.user),
            **columns,
        }
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        cql = f"INSERT INTO {self._table} ({names}) VALUES ({marks}) IF NOT EXISTS"
        self._statements.start(cql, list(values.values())).result()

    def update_flags(self, message: Message, flags: Flags, modseq: int) -> bool:
        """Set all flags if the row still has the modseq of `message`; False where not."""
        columns = {"modseq": modseq, **flags.columns()}
        assignments = [f"{column} = ?" for column in columns]
        values = list(columns.values())
        for sign, elements in (
            ("+", flags.user - message.flags.user),
            ("-", message.flags.user - flags.user),
        ):
            if elements:
                assignments.append(f"userflags = userflags {sign} ?")
                values.append(set(elements))
        cql = (
            f"UPDATE {self._table} SET {', '.join(assignments)} "
            "WHERE messageid = ? AND mailboxid = ? AND uid = ? IF modseq = ?"
        )
        key = [message.messageid, message.mailboxid, message.uid]
        answer = self._statements.start(cql, [*values, *key, message.modseq]).result()
        return bool(answer.was_applied)

    def start_delete(self, message: Message) -> ResponseFuture:
        """Send the delete by message and mailbox, without uid; do not wait for the answer."""
        cql = f"DELETE FROM {self._table} USING TIMESTAMP ? WHERE messageid = ? AND mailboxid = ?"
        return self._statements.start(
            cql, [self._clock.now_us(), message.messageid, message.mailboxid]
        )
