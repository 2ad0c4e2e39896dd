"""The planter: a user and mailbox of its own, and the tools that oddities are planted with."""

import random
import time
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from cassandra.cluster import Session

from deploy.mailserver.attachments import Shape
from deploy.mailserver.faults import Faults
from deploy.mailserver.history import MESSAGES, ProjectionWrite, RowKey, RowPlace, Statement
from deploy.mailserver.ledger import Ledger, LedgerEntry
from deploy.mailserver.mail import Attachment, Flags, Message
from deploy.mailserver.mailbag import random_content
from deploy.mailserver.mailserver import MailServer, insert_write, new_timeuuid
from deploy.mailserver.projection import statement_of
from deploy.mailserver.statements import Statements
from deploy.mailserver.variant import Variant

OLDER_ATTACHMENTS = Variant(attachments=Shape.UNTIL_3_6)
"""The demo's James refers to attachments as James did until 3.6, so that this is seen, too."""
NEIGHBOURS = 5
"""Healthy messages in each planter's mailbox, which must not be disturbed."""


class Planter:
    """Plants oddities in a mailbox of a user of its own and notes them in the ledger.

    `pause_s` is how long (seconds) to wait where an oddity needs the reconciler to have
    seen an earlier state.
    """

    def __init__(
        self, session: Session, keyspace: str, ledger: Ledger, seed: int = 1, pause_s: float = 0.0
    ) -> None:
        self.keyspace = keyspace
        self.server = MailServer(
            session, keyspace, faults=Faults(ledger=ledger), variant=OLDER_ATTACHMENTS
        )
        self._ledger = ledger
        self._pause_s = pause_s
        self._chance = random.Random(seed)
        self._statements = Statements(session)
        self.user = f"oddities-{new_timeuuid().hex[:8]}@example.org"
        self.mailboxid = self.server.create_mailbox(self.user, "INBOX")
        for _ in range(NEIGHBOURS):
            self.message()

    @property
    def truth_table(self) -> str:
        """Where each message is."""
        return f"{self.keyspace}.imapuidtable"

    @property
    def projection_table(self) -> str:
        """What each mailbox holds."""
        return f"{self.keyspace}.messageidtable"

    def message(self, *attachments: Attachment) -> Message:
        """A new, healthy message: answered, with the user flag `kept`, no column null."""
        content = random_content(self._chance)
        content = replace(content, threadid=content.messageid, attachments=attachments)
        return self.server.append(
            self.mailboxid, content, Flags(frozenset({"answered"}), frozenset({"kept"}))
        )

    def copy_elsewhere(self, message: Message) -> None:
        """Copy a message to a mailbox where nothing is planted: so it lives on."""
        user = f"elsewhere-{new_timeuuid().hex[:8]}@example.org"
        self.server.copy(message, self.server.create_mailbox(user, "INBOX"))

    def pause(self) -> None:
        """Give the reconciler time to see what is there now."""
        time.sleep(self._pause_s)

    def execute(self, cql: str, *values: object) -> None:
        """Run one statement at QUORUM."""
        self._statements.start(cql, list(values)).result()

    def write_truth(self, message: Message, timestamp_us: int) -> None:
        """Write a whole truth row with a given write time, as with strong writes off."""
        columns = {**message.columns(), "userflags": set(message.flags.user)}
        assignments = ", ".join(f"{column} = ?" for column in columns)
        self.execute(
            f"UPDATE {self.truth_table} USING TIMESTAMP ? SET {assignments} "
            "WHERE messageid = ? AND mailboxid = ? AND uid = ?",
            timestamp_us,
            *columns.values(),
            message.messageid,
            message.mailboxid,
            message.uid,
        )

    def write_projection(self, write: ProjectionWrite, timestamp_us: int) -> None:
        """Send a statement to the projection behind the mail server's back."""
        cql, values = statement_of(write, self.projection_table)
        self.execute(cql, timestamp_us, *values)

    def project(self, message: Message) -> None:
        """Write a whole projection row, now."""
        self.write_projection(insert_write("planted", message), now_us())

    def unproject(self, message: Message) -> None:
        """Remove a projection row, now."""
        write = replace(insert_write("planted", message), statement=Statement.DELETE, cells={})
        self.write_projection(replace(write, added=frozenset()), now_us())

    def set_cells(self, message: Message, **cells: object) -> None:
        """Set some cells of a projection row, now (None deletes a cell)."""
        write = replace(insert_write("planted", message), cells=cells, added=frozenset())
        self.write_projection(write, now_us())

    def note(self, kind: str, message: Message, ending: str, *others: RowKey) -> None:
        """Enter an oddity of this message's row (and perhaps others) with its ending."""
        place = (MESSAGES, (message.mailboxid, message.uid))
        self._note(kind, place, ending, others, message.messageid)

    def note_place(self, kind: str, place: RowPlace, ending: str) -> None:
        """Enter an oddity of a row of any projection with its ending."""
        self._note(kind, place, ending)

    def _note(
        self,
        kind: str,
        place: RowPlace,
        ending: str,
        others: tuple[RowKey, ...] = (),
        messageid: UUID | None = None,
    ) -> None:
        projection, row = place
        self._ledger.planted(
            LedgerEntry(
                id=f"planted-{kind}-{row[1]}",
                kind=kind,
                operation="planted",
                statement="planted",
                messageid=messageid,
                rows=(row, *others),
                time=datetime.now(UTC),
                accepts=(ending,),
                projection=projection,
            )
        )


def now_us() -> int:
    """This machine's time in microseconds, as a write time."""
    return time.time_ns() // 1000
