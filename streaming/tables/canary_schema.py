"""The keyspace and the table of canaries.

The keyspace has SimpleStrategy with one copy on any cluster: each row is on one node only, and no
other node's agent reports it.
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
"""Columns that an older table lacks: how long before a canary none was sent (µs), when its node
took it (ms, by Cassandra's ``now()``), and the number of partitions that it has lanes for."""


def create(session: Session, keyspace: str) -> None:
    """Create keyspace and table if missing, with change capture. Raises the driver's errors."""
    for cql in statements(keyspace):
        session.execute(cql)


def one_copy(keyspace: str) -> str:
    """The CQL that sets the keyspace back to one copy of each row."""
    return f"ALTER KEYSPACE {keyspace} {ONE_COPY}"


def lacking(columns: Collection[str]) -> list[str]:
    """The columns that a table with these columns lacks."""
    return [each for each in ADDED if each not in columns]


def add(keyspace: str, columns: Iterable[str]) -> str:
    """The CQL that adds columns to the table."""
    typed = ", ".join(f"{each} {ADDED[each]}" for each in columns)
    return f"ALTER TABLE {keyspace}.{CANARY_TABLE} ADD ({typed})"


def statements(keyspace: str) -> tuple[str, ...]:
    """The CQL of the keyspace and of the table."""
    return tuple(cql.replace("$ks", keyspace).strip() for cql in (KEYSPACE_CQL, TABLE_CQL))
