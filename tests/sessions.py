"""A session of Cassandra's driver, as patient as a test."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import WhiteListRoundRobinPolicy

from deploy.embedded.wait import HANG_S

MOST_COPIES = 3
ONE_COPY: Mapping[str, int] = {"replication_factor": 1}


@contextmanager
def session_at(host: str, port: int, **more: Any) -> Iterator[Session]:
    """At this one node, at James's consistency level; ``more`` goes to the driver's `Cluster`."""
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([host]),
        request_timeout=HANG_S,
        consistency_level=ConsistencyLevel.QUORUM,
    )
    cluster = Cluster(
        [host],
        port=port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=HANG_S,
        control_connection_timeout=HANG_S,
        **more,
    )
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


def create_keyspace(session: Session, name: str, copies: Mapping[str, int] = ONE_COPY) -> None:
    """If it does not exist; ``copies`` as of `copies_of`."""
    simple = "replication_factor" in copies
    strategy = "SimpleStrategy" if simple else "NetworkTopologyStrategy"
    told = ", ".join(f"'{name}': '{each}'" for name, each in copies.items())
    session.execute(
        f"CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {{'class': '{strategy}', {told}}}"
    )


def copies_of(session: Session) -> dict[str, int]:
    """Copies on up to three nodes of each data centre, by its name if there are several."""
    nodes = Counter(host.datacenter for host in session.cluster.metadata.all_hosts())
    copies = {name: min(MOST_COPIES, number) for name, number in nodes.items()}
    return copies if len(copies) > 1 else {"replication_factor": sum(copies.values())}


def replication_of(session: Session, keyspace: str) -> dict[str, str]:
    """As Cassandra stores it."""
    query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"
    row = session.execute(query, (keyspace,)).one()
    return dict(row["replication"] if isinstance(row, dict) else row.replication)
