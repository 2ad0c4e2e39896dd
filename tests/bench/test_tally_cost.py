"""What one changed message costs in mailboxes of several sizes: rows that Cassandra read for it."""

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraLineage, CassandraTallies, Store, create_schema
from checkpoints.clock import now_micros
from deploy.mailserver.filler import fill
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import bind
from reconcilers.declared.tally import Sum
from streaming.counters.both_sides import BothSides
from streaming.counters.count import MailboxCounter
from streaming.counters.open_messages import OpenMessages
from streaming.settings import Settings
from streaming.tables import CounterTables, Tables, connect, schema_of
from tests.bench.report import publish, table
from tests.conftest import make_mail_tables
from tests.endpoints import Running
from tests.stack.streams import until

pytestmark = pytest.mark.bench

SIZES = (1_000, 10_000, 100_000)
WIDTH = 1_000
READ = re.compile(r"Read (\d+) live rows")


@dataclass
class Traced:
    """A session whose every read is traced by Cassandra, which tells how many rows it read."""

    session: Session
    rows: int = 0
    reads: int = 0
    on: bool = False
    other: dict[str, Any] = field(default_factory=dict)

    def execute(self, *arguments: Any, **named: Any) -> Any:
        """Execute; when tracing is on, add up what the trace tells."""
        if not self.on:
            return self.session.execute(*arguments, **named)
        result = self.session.execute(*arguments, **named, trace=True)
        list_of_rows = list(result)
        returned = len(list_of_rows)
        self.rows += sum(until("Cassandra tells what it read", lambda: _told(result, returned)))
        self.reads += 1
        return iter(list_of_rows)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the session's own."""
        return getattr(self.session, name)


def _told(result: Any, returned: int) -> list[int]:
    """Rows read, by event; none while some are missing: a trace's events are written one by one.

    A page after the last row has none at all.
    """
    traces = result.get_all_query_traces(max_wait_sec_per=10)
    told = [READ.search(event.description) for trace in traces for event in trace.events]
    rows = [int(each[1]) for each in told if each]
    return rows if sum(rows) >= returned else []


@pytest.fixture
def keyspace(running: Running, cassandra: Session) -> Iterator[str]:
    name = f"cost_{uuid.uuid4().hex[:8]}"
    make_mail_tables(running, cassandra, name)
    create_schema(cassandra, f"{name}_own")
    yield name
    for each in (name, f"{name}_own"):
        cassandra.execute(f"DROP KEYSPACE IF EXISTS {each}")


def test_the_cost_of_a_change_does_not_grow_with_the_mailbox(
    running: Running, cassandra: Session, keyspace: str
) -> None:
    stack = running.endpoints
    where = {"hosts": [stack.cassandra_host], "port": stack.cassandra_port, "keyspace": keyspace}
    settings = Settings.model_validate({"cassandra": where})
    costs = {}
    for size in SIZES:
        (mailboxid,) = fill(cassandra, keyspace, size, 1)
        costs[size] = _cost(settings, keyspace, mailboxid, size)
    publish(
        "Cost of one changed message, by the size of its mailbox",
        "Rows that Cassandra read to count a mailbox again after one message had changed, as its"
        " traces tell: the chunk of the message, and the sums of the other chunks.",
        table(
            ("messages", "reads", "rows read"),
            [(f"{size:,}", reads, rows) for size, (reads, rows) in costs.items()],
        ),
    )
    rows = [rows for _, rows in costs.values()]
    assert max(rows) <= 2 * min(rows)


def _cost(settings: Settings, keyspace: str, mailboxid: UUID, size: int) -> tuple[int, int]:
    session = Traced(connect(settings.cassandra))
    family = bind(MESSAGE, schema_of(session.session, keyspace))
    store = Store(session.session, f"{keyspace}_own")
    tallies = CassandraTallies(store, WIDTH)
    tables: Any = session
    lists = CounterTables(tables, settings.cassandra, family, 10_000_000)
    truth, lineage = Tables(session.session, settings.cassandra, family), CassandraLineage(store)
    sides = BothSides(family, lists, truth, lineage, delay=0)
    counting = MailboxCounter(
        sides=sides,
        tallies=tallies,
        watched=tallies,
        clock=now_micros,
        width=WIDTH,
        open=OpenMessages(sides),
    )
    assert counting.sums([mailboxid])[Sum.COUNT] == size
    tallies.mark({mailboxid: {size // 2 // WIDTH}}, now_micros())
    chunks = len(tallies.of_mailbox(mailboxid).chunks)
    session.on = True
    assert counting.sums([mailboxid])[Sum.COUNT] == size
    return session.reads + 1, session.rows + chunks
