"""The only place of the embedded stack that imports the Cassandra driver."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cassandra import ConsistencyLevel, DriverException
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import ConstantReconnectionPolicy, WhiteListRoundRobinPolicy
from cassandra.query import dict_factory

from deploy.embedded.errors import StartError
from deploy.embedded.spec import Spec, Tls

UNREACHABLE = (DriverException, NoHostAvailable, OSError)
"""What a query raises while the server is away, or refuses."""

TIMEOUT_S = 20.0


@contextmanager
def session(spec: Spec, host: str = "127.0.0.1") -> Iterator[Any]:
    """A session at one node; it gives rows as dicts, connects again by itself.

    Raises UNREACHABLE.
    """
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([host]),
        row_factory=dict_factory,
        request_timeout=TIMEOUT_S,
        consistency_level=ConsistencyLevel.QUORUM,  # a single copy may be in another data centre
    )
    cluster = Cluster(
        [host],
        port=spec.ports.cassandra,
        **as_admin(spec),
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


def as_admin(spec: Spec) -> dict[str, Any]:
    """The driver's options for a connection under the admin's login, by TLS if the stack has it."""
    options: dict[str, Any] = {}
    if spec.admin is not None:
        login = PlainTextAuthProvider(spec.admin.username, spec.admin.password)
        options["auth_provider"] = login
    if spec.tls is not None:
        options["ssl_context"] = _tls(spec.tls)
    return options


def _tls(tls: Tls) -> ssl.SSLContext:
    made = tls.certificates
    context = ssl.create_default_context(cafile=str(made.ca))
    context.load_cert_chain(made.certificate("admin"), made.key("admin"))
    return context


def host_id(session: Any, host: str) -> str:
    """The id of the node at an address. Raises StartError where the cluster has none there."""
    for each in session.cluster.metadata.all_hosts():
        if each.address == host:
            return str(each.host_id)
    raise StartError(f"no node of the cluster is at {host}: start it before its agent")


def members(spec: Spec, host: str) -> int:
    """How many nodes a driver learns from the one at an address. Raises UNREACHABLE."""
    with session(spec, host) as connected:
        return len(connected.cluster.metadata.all_hosts())


def answers(spec: Spec, host: str) -> bool:
    """Whether a node answers a query now, under the admin's login if there is one."""
    try:
        with session(spec, host) as connected:
            connected.execute("SELECT release_version FROM system.local")
    except UNREACHABLE:
        return False
    return True
