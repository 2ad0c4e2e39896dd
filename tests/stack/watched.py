"""A mail keyspace that the agent watches, for streams that are killed and started again."""

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cassandra.cluster import Session

from checkpoints.cassandra import CassandraJournal, Store, create_schema
from checkpoints.clock import now_micros
from deploy.comparison.messages import Mismatch
from deploy.mailserver import james
from deploy.mailserver.mail import Clock, Message
from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.finding import Finding
from reconcilers.words.model import Kind
from tests.endpoints import Endpoints
from tests.sessions import create_keyspace
from tests.stack.rounds import Rows
from tests.stack.scenes import begin_at_the_end, events_of
from tests.stack.streams import PATIENCE, Stream, until, write_settings
from tests.stack.users import PROJECTION, RIGHT, TRUTH, User, a_difference, a_message

KINDS = (Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW)
SLOW = PATIENCE
"""Seconds to wait for what takes a start of Spark: far beyond it, also on a busy machine."""


@dataclass
class Watched:
    """A keyspace with James's two tables, captured; nobody else looks at it."""

    stack: Endpoints
    session: Session
    keyspace: str

    def stream(
        self, folder: Path, changes: Mapping[str, Mapping[str, Any]] | None = None
    ) -> "Restarted":
        """A stream that has not been started yet, which knows of what is written from now on."""
        own = f"reconciler_{uuid.uuid4().hex[:8]}"
        create_schema(self.session, own)
        store = Store(self.session, own)
        config = write_settings(
            folder / "reconcile.toml", self.stack, self.keyspace, own, changes or {}
        )
        begin_at_the_end(self.session, config)
        return Restarted(self, own, Stream(config), CassandraJournal(store))

    def captures(self) -> bool:
        """Whether the agent has published a row of each table, written for this question."""
        user = User(self.session, self.keyspace, Clock().now_us)
        change = user.adds(a_message(RIGHT, now_micros()))
        change.truth()
        change.projection()
        time.sleep(1)
        return all(events_of(self.stack, self.keyspace, table) for table in (TRUTH, PROJECTION))


@contextmanager
def watched(stack: Endpoints, session: Session) -> Iterator[Watched]:
    """Made for one module of tests, dropped after it."""
    keyspace = f"faults_{uuid.uuid4().hex[:8]}"
    create_keyspace(session, keyspace)
    try:
        for statement in james.schema_statements(keyspace):
            if any(f"{keyspace}.{table} (" in statement for table in (TRUTH, PROJECTION)):
                session.execute(f"{statement} WITH cdc = true")
        made = Watched(stack, session, keyspace)
        until("the agent captures the keyspace", made.captures)
        yield made
    finally:
        session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")


@dataclass
class Restarted:
    """One stream over its deaths and starts, what was planted, and what it made of it."""

    place: Watched
    own: str
    stream: Stream
    journal: CassandraJournal
    planted: dict[Kind, list[Message]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def plant(self) -> list[Message]:
        """One difference of each kind, now."""
        user = User(self.place.session, self.place.keyspace, Clock().now_us)
        made = []
        for kind in KINDS:
            message = a_message(RIGHT, now_micros())
            a_difference(kind, message, user)
            self.planted[kind].append(message)
            made.append(message)
        return made

    @property
    def messages(self) -> list[Message]:
        return [message for made in self.planted.values() for message in made]

    def differences(self) -> list[Mismatch]:
        rows = Rows(self.place.session, self.place.keyspace)
        return [each for message in self.messages for each in rows.differences(message)]

    def open_findings(self) -> list[Finding]:
        return list(self.journal.open_findings(MESSAGE))

    def await_convergence(self) -> None:
        """Until both tables agree on all that was planted, and no finding is open."""
        until("the tables agree", self._agrees, SLOW)
        until("every finding is closed", lambda: not self.open_findings(), SLOW)

    def _agrees(self) -> bool:
        died = self.stream.died()
        assert died is None, f"the stream ended with {died}:\n{self.stream.log.read_text()[-2000:]}"
        return not self.differences()

    def histories(self) -> dict[Message, list[dict[str, Any]]]:
        """What the journal says of each message, oldest first."""
        today = datetime.now(UTC).date()
        lines = [*self.journal.log(today - timedelta(days=1)), *self.journal.log(today)]
        return {
            message: [
                line
                for line in lines
                if (line.get("mailboxid"), line.get("uid")) == (str(message.mailboxid), message.uid)
            ]
            for message in self.messages
        }

    def each_was_repaired_once(self) -> None:
        """Assert that each finding took one attempt and was verified; a line may stand twice.

        Before its attempt a removal may have waited until the stream was not behind any more.
        """
        for message, told in self.histories().items():
            lines = [line for line in told if (line["waits"] or {}).get("wait") != "behind"]
            states = [line["state"] for line in lines]
            assert set(states) == {"intended", "verified"}, (message, states)
            assert states[-1] == "verified", (message, states)
            assert max(line["attempts"] for line in lines) == 1, (message, lines)

    def forget(self) -> None:
        """Leave nothing behind."""
        self.stream.kill()
        self.place.session.execute(f"DROP KEYSPACE IF EXISTS {self.own}")
