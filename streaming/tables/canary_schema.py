"""The keyspace and the table of canaries.

SimpleStrategy with one copy, whatever the cluster: then each row is one node's alone.
"""

from __future__ import annotations

from cassandra.cluster import Session

KEYSPACE_CQL = """
CREATE KEYSPACE IF NOT EXISTS $ks
    WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
"""

TABLE_CQL = """
CREATE TABLE IF NOT EXISTS $ks.canary (
    place text,
    lane int,
    number bigint,
    previous bigint,
    steady boolean,
    tried bigint,
    PRIMARY KEY (place, lane)
) WITH cdc = true
"""


def create(session: Session, keyspace: str) -> None:
    """Make what is missing, with change capture on. Raises the driver's errors."""
    for cql in statements(keyspace):
        session.execute(cql)


def statements(keyspace: str) -> tuple[str, ...]:
    """The CQL of both."""
    return tuple(cql.replace("$ks", keyspace).strip() for cql in (KEYSPACE_CQL, TABLE_CQL))
