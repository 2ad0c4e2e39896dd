"""One topic holds the events of all tables, each partition of it in the order of their writing.

Canaries are written in lanes, one batch of all lanes at a time, among rows of another table. What
was written before a canary must stand before it in each partition; the frontier rests on that.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from cassandra.query import BatchStatement, BatchType

from deploy.embedded import Stack
from streaming.tables import canary_schema
from tests.endpoints import Endpoints
from tests.sessions import session_at
from tests.stack.embedded import wanted
from tests.stack.scenes import events_of
from tests.stack.streams import until

pytestmark = pytest.mark.stack

PLACE, LANES, CANARIES, ROWS_BETWEEN = "a node/0", 8, 30, 7


@dataclass(frozen=True)
class Tables:
    """A keyspace with a table of canaries and another one, both captured."""

    session: Session
    keyspace: str

    def row(self, number: int) -> None:
        self.session.execute(f"INSERT INTO {self.keyspace}.mail (number) VALUES (%s)", (number,))

    def canary(self, number: int) -> None:
        insert = (
            f"INSERT INTO {self.keyspace}.canary (place, lane, number, previous, steady, idle_us)"
            " VALUES (%s, %s, %s, %s, true, 0)"
        )
        batch = BatchStatement(BatchType.UNLOGGED)
        for lane in range(LANES):
            batch.add(insert, (PLACE, lane, number, number - 1))
        self.session.execute(batch)

    def write(self) -> None:
        """Canary 1 comes after the rows below `ROWS_BETWEEN`, canary 2 after as many more …"""
        for number in range(CANARIES * ROWS_BETWEEN):
            self.row(number)
            if number % ROWS_BETWEEN == ROWS_BETWEEN - 1:
                self.canary(number // ROWS_BETWEEN + 1)


@contextmanager
def tables(stack: Endpoints, session: Session) -> Iterator[Tables]:
    """Made for one test, in sight of the agent, dropped after it."""
    made = Tables(session, f"one_topic_{uuid.uuid4().hex[:8]}")
    probes = iter(range(-1, -1_000, -1))

    def seen() -> bool:
        made.row(next(probes))
        made.canary(0)
        return all(events_of(stack, made.keyspace, each) for each in ("mail", "canary"))

    canary_schema.create(session, made.keyspace)
    session.execute(
        f"CREATE TABLE {made.keyspace}.mail (number bigint PRIMARY KEY) WITH cdc = true"
    )
    try:
        until("the agent captures the tables", seen)
        yield made
    finally:
        session.execute(f"DROP KEYSPACE IF EXISTS {made.keyspace}")


def came(stack: Endpoints, keyspace: str) -> dict[int, list[tuple[str, int, int]]]:
    """By partition, each event once: its table, its number, its lane (0 of a row)."""
    found: dict[int, list[tuple[str, int, int]]] = {}
    for record in events_of(stack, keyspace, "mail", "canary"):
        key, value = json.loads(record.key), json.loads(record.value)
        told: dict[str, Any] = value["after"]
        number = int(told["number"]["value"])
        event = (str(value["source"]["table"]), number, int(key.get("lane", 0)))
        in_partition = found.setdefault(record.partition, [])
        if number > 0 and event not in in_partition:
            in_partition.append(event)
    return found


def assert_one_topic_in_order(stack: Endpoints, session: Session) -> None:
    with tables(stack, session) as made:
        made.write()
        wanted = {
            ("canary", number, lane) for number in range(1, CANARIES + 1) for lane in range(LANES)
        }
        wanted |= {("mail", number, 0) for number in range(1, CANARIES * ROWS_BETWEEN)}

        def all_came() -> bool:
            return {each for part in came(stack, made.keyspace).values() for each in part} >= wanted

        until("every event is in the one topic", all_came)
        for events in came(stack, made.keyspace).values():
            assert "canary" in {table for table, *_ in events}, "a partition without a lane"
            heard = 0
            for table, number, _lane in events:
                if table == "canary":
                    assert number >= heard
                    heard = number
                else:
                    assert number // ROWS_BETWEEN >= heard, "it was written before the canary"


def test_what_was_written_before_a_canary_comes_before_it(
    stack: Endpoints, cassandra: Session
) -> None:
    assert_one_topic_in_order(stack, cassandra)


@pytest.mark.long(part="capture")
def test_so_it_does_on_cassandra_4_1(tmp_path: Path) -> None:
    with (
        Stack(tmp_path / "stack", wanted(release="4.1")) as older,
        session_at("127.0.0.1", older.cassandra_port) as session,
    ):
        assert_one_topic_in_order(Endpoints.of(older.describe()), session)
