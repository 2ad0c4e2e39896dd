"""The only place of the embedded stack that imports the Cassandra driver."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cassandra import DriverException
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import ConstantReconnectionPolicy, WhiteListRoundRobinPolicy
from cassandra.query import dict_factory

from deploy.embedded.spec import Spec

UNREACHABLE = (DriverException, NoHostAvailable, OSError)
"""What a query raises while the server is away, or refuses."""

TIMEOUT_S = 20.0


@contextmanager
def session(spec: Spec) -> Iterator[Any]:
    """A session that gives rows as dicts and connects again by itself. Raises UNREACHABLE."""
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy(["127.0.0.1"]),
        row_factory=dict_factory,
        request_timeout=TIMEOUT_S,
    )
    login = PlainTextAuthProvider(spec.admin.username, spec.admin.password) if spec.admin else None
    cluster = Cluster(
        ["127.0.0.1"],
        port=spec.ports.cassandra,
        auth_provider=login,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(1.0, max_attempts=None),
        protocol_version=4,
        connect_timeout=TIMEOUT_S,
        control_connection_timeout=TIMEOUT_S,
        schema_metadata_enabled=False,
        token_metadata_enabled=False,
    )
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


def answers(spec: Spec) -> bool:
    """Whether a query is answered now, under the admin's login if there is one."""
    try:
        with session(spec) as connected:
            connected.execute("SELECT release_version FROM system.local")
    except UNREACHABLE:
        return False
    return True
