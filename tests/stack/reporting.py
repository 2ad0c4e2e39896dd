"""Lightweight transactions in a keyspace of a test's own, and the report on what was done there."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from reconcilers.lwt.cost import Cost, TableWork, cost_of
from streaming.commands.lwt.report import Beans, Reader, asking, measured, placement_of
from streaming.settings import CassandraSettings
from streaming.tables.node_metrics import node_metrics
from tests.sessions import create_keyspace

Report = Callable[[Callable[[], object]], Cost]
"""Does something between two snapshots, and returns what they tell of it."""


@contextmanager
def reporting(settings: CassandraSettings, places: tuple[str, ...] = ()) -> Iterator[Report]:
    """Reports on all nodes; ``places`` are where they answer JMX, else at their own addresses."""
    with node_metrics(settings) as metrics, asking(settings.request_timeout) as ask:
        beans, patience = Beans(ask, settings, list(places)), settings.request_timeout
        reader = Reader(metrics, beans, settings.username, patience)

        def report(work: Callable[[], object]) -> Cost:
            before = reader.snapshots()
            began = time.monotonic()
            work()
            seconds = time.monotonic() - began
            found = measured(before, reader.snapshots())
            return cost_of(found, placement_of(metrics, settings), seconds)

        yield report


@dataclass(frozen=True)
class Mail:
    """Two plain tables of a keyspace that nothing else touches."""

    session: Session
    keyspace: str

    def insert(self, *numbers: int) -> None:
        """New rows of the truth, each by a lightweight transaction that is applied."""
        for number in numbers:
            cql = f"INSERT INTO {self.keyspace}.imapuidtable (id, v) VALUES ({number}, 0)"
            assert self.session.execute(f"{cql} IF NOT EXISTS").was_applied

    def update(self, *numbers: int, expected: int) -> list[bool]:
        """Rows of the truth, on the condition of what they hold; whether each was applied."""
        cql = f"UPDATE {self.keyspace}.imapuidtable SET v = 1"
        return [
            bool(self.session.execute(f"{cql} WHERE id = {n} IF v = {expected}").was_applied)
            for n in numbers
        ]

    def write(self, *numbers: int) -> None:
        """Rows of the other table, without conditions."""
        for number in numbers:
            self.session.execute(
                f"INSERT INTO {self.keyspace}.messageidtable (id, v) VALUES ({number}, 0)"
            )

    def read(self, table: str, *numbers: int, level: int = ConsistencyLevel.QUORUM) -> None:
        """By key."""
        for number in numbers:
            query = f"SELECT v FROM {self.keyspace}.{table} WHERE id = {number}"
            self.session.execute(SimpleStatement(query, consistency_level=level)).one()

    def of(self, cost: Cost, table: str) -> TableWork:
        """What a report tells of a table."""
        return next(each for each in cost.tables if each.table == (self.keyspace, table))


@contextmanager
def mail(session: Session) -> Iterator[Mail]:
    """Made, and dropped at the end."""
    keyspace = f"lwt_{uuid.uuid4().hex[:8]}"
    create_keyspace(session, keyspace)
    for table in ("imapuidtable", "messageidtable"):
        session.execute(f"CREATE TABLE {keyspace}.{table} (id int PRIMARY KEY, v int)")
    yield Mail(session, keyspace)
    session.execute(f"DROP KEYSPACE {keyspace}")
