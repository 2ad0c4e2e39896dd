"""The keyspace and the table of canaries.

SimpleStrategy with one copy, whatever the cluster: then each row is one node's alone, and no other
node's agent tells of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cassandra.cluster import Session

from reconcilers.capture.frontier import CANARY_TABLE

ONE_COPY = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
KEYSPACE_CQL = f"CREATE KEYSPACE IF NOT EXISTS $ks {ONE_COPY}"

TABLE_CQL = """
CREATE TABLE IF NOT EXISTS $ks.canary (
    place text,
    lane int,
    number bigint,
    previous bigint,
    steady boolean,
    idle_us bigint,
    written_ms bigint,
    partitions int,
    PRIMARY KEY (place, lane)
) WITH cdc = true
"""

ADDED = {"idle_us": "bigint", "written_ms": "bigint", "partitions": "int"}
"""Columns that can be added to a table without them: how long before a canary none was sent, when
its node took it (ms, by Cassandra's ``now()``), and for how many partitions it has lanes."""


def create(session: Session, keyspace: str) -> None:
    """Make what is missing, with change capture on. Raises the driver's errors."""
    for cql in statements(keyspace):
        session.execute(cql)


def one_copy(keyspace: str) -> str:
    """The CQL that makes each row one node's alone again."""
    return f"ALTER KEYSPACE {keyspace} {ONE_COPY}"


def lacking(columns: Collection[str]) -> list[str]:
    """The columns that a table with these columns lacks."""
    return [each for each in ADDED if each not in columns]


def add(keyspace: str, columns: Iterable[str]) -> str:
    """The CQL that gives a table the columns that it lacks."""
    typed = ", ".join(f"{each} {ADDED[each]}" for each in columns)
    return f"ALTER TABLE {keyspace}.{CANARY_TABLE} ADD ({typed})"


def statements(keyspace: str) -> tuple[str, ...]:
    """The CQL of both."""
    return tuple(cql.replace("$ks", keyspace).strip() for cql in (KEYSPACE_CQL, TABLE_CQL))
