"""A first sweep over orphans of the past, and one over as many equal rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraJournal, CassandraLostRows, Store
from deploy.mailserver import james
from deploy.mailserver.filler import fill
from reconcilers.declared.families.message import MESSAGE
from reconcilers.sweep.lost_rows import reason_at
from tests.bench.backlog import MAILBOXES, bench_settings
from tests.bench.report import publish, table
from tests.bench.test_sweep import MESSAGES, Sweep, Swept
from tests.endpoints import Running
from tests.stack.scenes import begin_at_the_end

pytestmark = pytest.mark.bench

ROWS = MESSAGES
"""Of each (`BENCH_SWEPT`)."""
OF_THE_PAGE = 1_000_000
MOST_TIMES, MOST_FINDINGS = 2.0, 20


@pytest.fixture
def filled(
    running: Running, cassandra: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Swept, Session]]:
    """A keyspace in which each message is right."""
    name = uuid.uuid4().hex[:8]
    keyspace, own, stack = f"past_{name}", f"past_{name}_own", running.endpoints
    james.create_schema(cassandra, keyspace)
    made = Swept(stack, keyspace, own, tmp_path_factory.mktemp("past"))
    begun(made, cassandra)
    fill(cassandra, keyspace, ROWS, MAILBOXES)
    yield made, cassandra
    for each in (keyspace, own):
        cassandra.execute(f"DROP KEYSPACE IF EXISTS {each}")


def test_a_first_sweep_over_orphans_of_the_past(filled: tuple[Swept, Session]) -> None:
    swept, session = filled
    equal = swept.sweep()
    forget_all(session, swept.own)
    session.execute(f"TRUNCATE {swept.keyspace}.imapuidtable")
    begun(swept, session)
    orphans = swept.sweep()
    store = Store(session, swept.own)
    found = list(CassandraJournal(store).open_findings(MESSAGE))
    left = sum(1 for _ in CassandraLostRows(store).all(MESSAGE))
    times = orphans.seconds / equal.seconds
    tell(equal, orphans, len(found), times)
    for each in found:
        print(each.sentence)
    assert left == ROWS
    assert len(found) <= MOST_FINDINGS
    assert all(reason_at(MESSAGE, each.slot) for each in found)
    assert times <= MOST_TIMES


def begun(swept: Swept, session: Session) -> None:
    """Memory begins, and nothing is remembered."""
    config = bench_settings(swept.folder, swept.stack, swept.keyspace, swept.own, {})
    begin_at_the_end(session, config)


def forget_all(session: Session, own: str) -> None:
    """Our keyspace is that of an installation that has seen nothing."""
    query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
    kept = {"schema_steps", "owner", "pauses", "breakers", "holds"}
    for row in session.execute(query, [own]):
        if row.table_name not in kept:
            session.execute(f"TRUNCATE {own}.{row.table_name}")


def tell(equal: Sweep, orphans: Sweep, findings: int, times: float) -> None:
    """A quick try is only printed."""
    told = [
        f"{ROWS:,} messages in {MAILBOXES} mailboxes: first both tables agree, then the truth has"
        " none of them and nothing is remembered. Each is the first sweep of its installation.",
        table(
            ("rows", "seconds", "rows/s", "core-µs a row, ours"),
            [
                (name, run.seconds, round(ROWS / run.seconds), run.ours)
                for name, run in (("equal", equal), ("orphans of the past", orphans))
            ],
        ),
        f"Orphans take {times:.2f} times as long (promised: {MOST_TIMES:g}), and leave {findings}"
        f" open findings (promised: {MOST_FINDINGS}).",
    ]
    if ROWS == OF_THE_PAGE:
        publish("A first sweep over orphans of the past", *told)
    else:
        print("\n\n".join(told))
