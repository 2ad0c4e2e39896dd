"""`reconcile lwt-report` gives back what was done to the real servers, to the number."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from reconcilers.lwt_cost import PAXOS, Cost, Range, TableWork, cost_of
from streaming.commands.lwt_report import Beans, Reader, measured
from streaming.monitoring.jvm import Jvm
from streaming.settings import CassandraSettings, load
from streaming.tables.node_metrics import node_metrics
from tests.endpoints import Endpoints

pytestmark = pytest.mark.stack

SERIAL = ConsistencyLevel.SERIAL
Between = Callable[[Callable[[], None]], Cost]


@pytest.fixture(scope="module")
def keyspace(cassandra: Session) -> Iterator[str]:
    """Two plain tables of this file's own: nothing else touches them."""
    name = f"lwt_{uuid.uuid4().hex[:8]}"
    cassandra.execute(
        f"CREATE KEYSPACE {name} WITH replication ="
        " {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    for table in ("imapuidtable", "messageidtable"):
        cassandra.execute(f"CREATE TABLE {name}.{table} (id int PRIMARY KEY, v int)")
    yield name
    cassandra.execute(f"DROP KEYSPACE {name}")


@pytest.fixture(scope="module")
def settings(stack: Endpoints) -> CassandraSettings:
    return load(stack.config, {}).cassandra


@pytest.fixture(scope="module")
def between(stack: Endpoints, settings: CassandraSettings) -> Iterator[Between]:
    """Does something between two snapshots, and returns the report on it."""
    jvm = Jvm(settings.request_timeout)
    with node_metrics(settings) as metrics:
        reader = Reader(metrics, Beans(jvm, settings, []), None)

        def report(work: Callable[[], None]) -> Cost:
            before = reader.snapshots()
            work()
            return cost_of(measured(before, reader.snapshots()), metrics.copies(), 1.0)

        yield report
    jvm.close()


def table_of(cost: Cost, keyspace: str, table: str) -> TableWork:
    return next(each for each in cost.tables if each.table == (keyspace, table))


def insert(session: Session, table: str, number: int) -> bool:
    done = session.execute(f"INSERT INTO {table} (id, v) VALUES ({number}, 0) IF NOT EXISTS")
    return bool(done.was_applied)


def update(session: Session, table: str, number: int, expected: int) -> bool:
    cql = f"UPDATE {table} SET v = 1 WHERE id = {number} IF v = {expected}"
    return bool(session.execute(cql).was_applied)


def read(session: Session, table: str, number: int, level: int = ConsistencyLevel.QUORUM) -> None:
    query = f"SELECT v FROM {table} WHERE id = {number}"
    session.execute(SimpleStatement(query, consistency_level=level)).one()


def test_a_known_number_of_each_kind_comes_back(
    cassandra: Session, keyspace: str, between: Between
) -> None:
    """Two tables: their rounds are exact; which rounds were reads is known within a range."""
    truth, other = f"{keyspace}.imapuidtable", f"{keyspace}.messageidtable"

    def work() -> None:
        assert all(insert(cassandra, truth, number) for number in range(20))
        assert not any(update(cassandra, truth, number, 9) for number in range(7))
        assert all(update(cassandra, truth, number, 0) for number in range(4))
        for number in range(13):
            read(cassandra, truth, number, SERIAL)
        for number in range(11):
            read(cassandra, truth, number)
        for number in range(17):
            cassandra.execute(f"INSERT INTO {other} (id, v) VALUES ({number}, 0)")
        for number in range(5):
            read(cassandra, other, number)
        cassandra.execute(f"SELECT * FROM {other}").all()

    cost = between(work)
    found = table_of(cost, keyspace, "imapuidtable")
    assert cost.known_by_table
    assert found.changed == 20 + 4
    assert found.unchanged == 7 + 13
    assert found.serial_reads.low <= 13 <= found.serial_reads.high
    assert found.refused.low <= 7 <= found.refused.high
    assert (found.ordinary_reads, found.ordinary_writes) == (11, 0)
    plain = table_of(cost, keyspace, "messageidtable")
    assert (plain.changed, plain.unchanged) == (0, 0)
    assert (plain.serial_reads, plain.refused) == (Range(0, 0), Range(0, 0))
    assert (plain.ordinary_reads, plain.ordinary_writes) == (6, 17)
    assert cost.shares["writes"].paxos >= 2 * (20 + 7 + 4 + 13)
    assert PAXOS in {each.table for each in cost.tables}
