"""A driver session for tests in which Cassandra goes away."""

from collections.abc import Iterator
from contextlib import contextmanager

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import ConstantReconnectionPolicy, WhiteListRoundRobinPolicy

from deploy.embedded import Stack
from deploy.embedded.waiting import HANG_S


@contextmanager
def reconnecting(stack: Stack) -> Iterator[Session]:
    """Connects again by itself, a second after Cassandra is back."""
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy(["127.0.0.1"]), request_timeout=HANG_S
    )
    cluster = Cluster(
        ["127.0.0.1"],
        port=stack.cassandra_port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(1.0, max_attempts=None),
        protocol_version=5,
        connect_timeout=HANG_S,
        control_connection_timeout=HANG_S,
    )
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()
