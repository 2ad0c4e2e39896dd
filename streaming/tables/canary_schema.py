"""The keyspace and the table of canaries.

SimpleStrategy with one copy, whatever the cluster: then each row is one node's alone, and no other
node's agent tells of it.
"""

from __future__ import annotations

from cassandra.cluster import Session

ONE_COPY = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
KEYSPACE_CQL = f"CREATE KEYSPACE IF NOT EXISTS $ks {ONE_COPY}"

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


def one_copy(keyspace: str) -> str:
    """The CQL that makes each row one node's alone again."""
    return f"ALTER KEYSPACE {keyspace} {ONE_COPY}"


def statements(keyspace: str) -> tuple[str, ...]:
    """The CQL of both."""
    return tuple(cql.replace("$ks", keyspace).strip() for cql in (KEYSPACE_CQL, TABLE_CQL))
