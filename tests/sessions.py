"""A session of Cassandra's driver, as patient as a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import WhiteListRoundRobinPolicy

from deploy.embedded.wait import HANG_S


@contextmanager
def session_at(host: str, port: int, **more: Any) -> Iterator[Session]:
    """At this one node; ``more`` goes to the driver's `Cluster`."""
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([host]), request_timeout=HANG_S
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


def create_keyspace(session: Session, name: str) -> None:
    """With one copy of each row."""
    session.execute(
        f"CREATE KEYSPACE {name} WITH replication ="
        " {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
