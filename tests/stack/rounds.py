"""Steps 3 to 7 on a real Cassandra without Spark and Kafka: round after round, with stops.

A round looks at keys and settles the suspects, by the product's own `Look` and `Examiner`. Whoever
waits for a `Point` is let in there. Keys that are published come back in the next round, as they
do through the suspects topic one delay later.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from cassandra.cluster import Session

from checkpoints.cassandra import CassandraJournal, CassandraLineage, Store, create_schema
from checkpoints.clock import now_micros
from checkpoints.journal import Journal
from checkpoints.lineage import Lineage
from checkpoints.no_lineage import NoLineage
from deploy.comparison.messages import Mismatch, compare_row
from deploy.mailserver import james
from deploy.mailserver.mail import Message
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, Projection, bind, keeping
from reconcilers.declared.writes import Write
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Action, Attempts, Finding
from reconcilers.rows.memory import believed_since
from reconcilers.words.errors import ReconcilerError, Retryable
from reconcilers.words.key import named
from reconcilers.words.model import KeyValue, Micros, Row, Slot, Wake
from streaming.settings import CassandraSettings, load
from streaming.steps.confirm import Confirmer
from streaming.steps.contents import ContentReads, Contents
from streaming.steps.examine import Examiner, Rules
from streaming.steps.look import Look
from streaming.steps.outcome import Outcome
from streaming.steps.ports import MessageTables
from streaming.tables import ContentTables, Tables, open_session, schema_of
from tests.builders.permits import permit
from tests.endpoints import Endpoints
from tests.sessions import create_keyspace
from tests.stack.streams import write_settings

SECOND: Micros = 1_000_000
DELAY: Micros = 1 * SECOND
"""D of these rounds: clocks may be half a second apart."""
COMES_BACK = DELAY
"""After so long a published key comes back, whatever a test sets D to."""
SHADOW: Micros = 600_000
LONG_AGO: Micros = 60 * SECOND
"""How old a difference is when the stream hears of it."""
CLOCKS_MS = (0, 300, -300)
"""How far users' clocks are ahead of ours in a race."""
MOST_ROUNDS = 8
MOST_ATTEMPTS = 3
MOST_FAILURES = 50
Play = TypeVar("Play")
MESSAGES = keeping(MESSAGE, ())


class Point(StrEnum):
    """Where a round can be stopped, in order."""

    LOOKED = "between look and confirm"
    PROJECTION_READ = "between the reads of confirm"
    CONFIRMED = "between confirm and journal"
    JOURNALLED = "between journal and repair"
    REPAIRED = "after the repair"


@dataclass
class Stopping:
    """The real tables, with stops around step 5 and 6."""

    tables: Tables
    stop: Callable[[Point], None]

    def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        return self.tables.truth_rows(messageids)

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        return self.tables.projection_rows(projection, slots)

    def slots_of_group(
        self, projection: Projection, group: KeyValue
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        return self.tables.slots_of_group(projection, group)

    def some_slots(
        self, projection: Projection, group: KeyValue, most: int, first: KeyValue | None
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        return self.tables.some_slots(projection, group, most, first)

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        self.stop(Point.LOOKED)
        rows = self.tables.projection_with_times(projection, slots)
        self.stop(Point.PROJECTION_READ)
        return rows

    def truth_serially(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        truths = self.tables.truth_serially(messageids)
        self.stop(Point.CONFIRMED)
        return truths

    def truth_with_times(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        return self.tables.truth_with_times(messageids)

    def apply(self, writes: Sequence[Write]) -> None:
        self.stop(Point.JOURNALLED)
        self.tables.apply(writes)
        self.stop(Point.REPAIRED)


@dataclass(frozen=True)
class Ground:
    """Two keyspaces on the stack: a family's tables of James (no stream reads them), and our own.

    ``session`` gives rows as named tuples, as the mail server's code wants them.
    """

    session: Session
    keyspace: str
    family: Family
    tables: Tables
    lineage: Lineage
    journal: CassandraJournal
    contents: ContentReads

    @property
    def projection(self) -> Projection:
        return self.family.projections[0]


@contextmanager
def ground(
    stack: Endpoints, session: Session, folder: Path, family: Family = MESSAGES
) -> Iterator[Ground]:
    """Made for one module of tests, dropped after it."""
    keyspace, own = (f"{name}_{uuid.uuid4().hex[:8]}" for name in ("rounds", "reconciler"))
    names = (*family.wakes_on, *family.truth.owners)
    tables = [
        statement
        for statement in james.schema_statements(keyspace)
        if any(f"{keyspace}.{name} (" in statement for name in names)
        or statement.startswith("CREATE TYPE")
    ]
    product: Session | None = None
    try:
        create_keyspace(session, keyspace)
        for statement in tables:
            session.execute(statement)
        create_schema(session, own)
        file = write_settings(folder / "rounds.toml", stack, keyspace, own, {})
        settings = load(file, {}).cassandra
        product = open_session(settings)
        yield _on(session, product, settings, family)
    finally:
        if product is not None:
            product.cluster.shutdown()
        for each in (keyspace, own):
            session.execute(f"DROP KEYSPACE IF EXISTS {each}")


def _on(
    session: Session, product: Session, settings: CassandraSettings, declared: Family
) -> Ground:
    family = bind(declared, schema_of(product, settings.keyspace))
    store = Store(product, settings.own_keyspace)
    lineage = CassandraLineage(store) if family.remembered else NoLineage()
    lineage.watch_from(1)
    return Ground(
        session,
        settings.keyspace,
        family,
        Tables(product, settings, family),
        lineage,
        CassandraJournal(store),
        ContentTables(product, settings, family.truth),
    )


@dataclass
class Rounds:
    """A stream's life, a round at a time, with everything it reads and writes replaceable.

    ``due`` are the keys of the next round: those that were published, and those of users' writes.
    """

    ground: Ground
    tables: MessageTables | None = None
    journal: Journal | None = None
    lineage: Lineage | None = None
    due: list[Wake] = field(default_factory=list)
    admission: Admission = field(default_factory=Admission)
    publish: Callable[[list[Wake]], None] | None = None
    contents: ContentReads | None = None
    """What is asked for content; None: nobody."""
    done: list[Outcome] = field(default_factory=list)
    failures: list[ReconcilerError] = field(default_factory=list)
    _ended: int = 0
    _back_at: Micros = 0

    def round(self) -> list[Outcome]:
        """Look at what is due and settle it; what fails is executed again, as the same batch.

        What was published comes back a delay later, as from the stream's window.
        Raises what is not `Retryable`: then the next round is that batch.
        """
        while now_micros() < self._back_at:
            time.sleep(0.02)
        wakes, self.due = self.due, []
        while True:
            try:
                outcomes = self._once(wakes, f"batch-{self._ended}")
            except ReconcilerError as failed:
                self.failures.append(failed)
                if not isinstance(failed, Retryable) or len(self.failures) == MOST_FAILURES:
                    self.due = wakes
                    raise
            else:
                self._ended += 1
                self.done += outcomes
                return outcomes

    def _once(self, wakes: Sequence[Wake], batch: str) -> list[Outcome]:
        ground = self.ground
        tables = self.tables or ground.tables
        lineage = self.lineage or ground.lineage
        since = believed_since(lineage.watching(), DELAY)
        look = Look(ground.family, tables, lineage, since)
        looked = look.at(wakes, now_micros())
        self.due += looked.again
        return self._examiner(tables, lineage).examine(
            looked.suspects, permit(self.admission), batch
        )

    def _examiner(self, tables: MessageTables, lineage: Lineage) -> Examiner:
        ground = self.ground
        confirmation = Confirmer(
            ground.family,
            ground.projection,
            tables,
            lineage,
            DELAY,
            Contents(ground.family, tables, self.contents, DELAY) if self.contents else None,
        )
        return Examiner(
            ground.projection,
            tables,
            confirmation,
            self.journal or ground.journal,
            self._publish,
            now_micros,
            Rules(
                DELAY,
                0,
                DELAY,
                Attempts(MOST_ATTEMPTS, apart=DELAY),
                empty_truth_min_rows=10,
            ),
        )

    def _publish(self, wakes: Iterable[Wake]) -> None:
        keys = list(wakes)
        self._back_at = now_micros() + COMES_BACK
        if self.publish is not None:
            self.publish(keys)
        self.due += keys

    def look_again_at(self, suspects: Iterable[Slot]) -> None:
        """The driver's agenda: an open finding comes back whether or not its key was published."""
        name = self.ground.projection.name
        self._back_at = now_micros() + COMES_BACK
        self.due += [Wake(slot.key, None, looked_again=True, projection=name) for slot in suspects]

    # --- what came of it

    def findings(self, slots: Iterable[Slot]) -> dict[Slot, Finding]:
        """The findings that are open at these slots."""
        ground = self.ground
        return ground.journal.recall(ground.family, ground.projection.name, slots)

    def repairs(self) -> list[Outcome]:
        """The repairs that were sent."""
        return [each for each in self.done if each.action is Action.REPAIR]

    def log_of(self, slot: Slot) -> list[dict[str, Any]]:
        """What the journal's log says of a slot, oldest first, the last two days."""
        today = datetime.now(UTC).date()
        lines = [
            *self.ground.journal.log(today - timedelta(days=1)),
            *self.ground.journal.log(today),
        ]
        place = named(self.ground.family.key, slot.key)
        return [line for line in lines if line | place == line]


@dataclass
class Rows:
    """What both tables hold, read beside the product."""

    session: Session
    keyspace: str

    def projected(self, message: Message) -> dict[str, Any] | None:
        query = f"SELECT * FROM {self.keyspace}.messageidtable WHERE mailboxid = %s AND uid = %s"
        row = self.session.execute(query, (message.mailboxid, message.uid)).one()
        return None if row is None else row._asdict()

    def differences(self, message: Message) -> list[Mismatch]:
        query = f"SELECT * FROM {self.keyspace}.imapuidtable WHERE messageid = %s"
        claims = [row._asdict() for row in self.session.execute(query, (message.messageid,))]
        projected = self.projected(message)
        return list(compare_row(claims, projected)) if claims or projected else []


def let_a_delay_pass() -> None:
    """What was written until now, by any clock that is at most 300 ms ahead, is then settled."""
    settled = now_micros() + DELAY + 350_000
    while now_micros() < settled:
        time.sleep(0.02)


def until_rest(plays: Iterable[Play], go_on: Callable[[Play], bool]) -> None:
    """Later rounds of each case that has anything left to do, a delay apart; not for ever."""
    busy = list(plays)
    for _ in range(MOST_ROUNDS):
        let_a_delay_pass()
        busy = [play for play in busy if go_on(play)]
