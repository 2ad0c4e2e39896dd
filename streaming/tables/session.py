"""Sessions with James's cluster, one for each process, and the cluster's schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from socket import SOCK_STREAM, getaddrinfo

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    RoundRobinPolicy,
    TokenAwarePolicy,
)
from cassandra.query import dict_factory

from checkpoints.cassandra import Levels, Store, levels
from checkpoints.cassandra.driver_errors import translated
from reconcilers.declared.family import Schema
from reconcilers.words.errors import Retryable
from streaming.settings import CassandraSettings, fault, tls_context
from streaming.tables.dates import read_dates_as_numbers
from streaming.tables.reconnection import Logins, connection_class, reconnection_policy
from streaming.tables.server_load import watch

COLUMNS = "SELECT table_name, column_name, type FROM system_schema.columns WHERE keyspace_name = %s"


@cache
def connect(settings: CassandraSettings) -> Session:
    """The session of this process, opened at the first call. Raises as `open_session` does."""
    return open_session(settings)


def open_session(settings: CassandraSettings) -> Session:
    """A new session, which the caller closes.

    Each connection reads the password and the certificates again. Raises
    `reconcilers.words.errors.Unreachable`, `Refused` (wrong credentials), or `Misconfigured`.
    """
    policy = DCAwareRoundRobinPolicy(settings.local_dc) if settings.local_dc else RoundRobinPolicy()
    consistency = levels_of(settings)
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(policy),
        consistency_level=consistency.each,
        serial_consistency_level=consistency.serial,
        request_timeout=settings.request_timeout,
        row_factory=dict_factory,
    )
    logins = Logins(settings) if settings.username else None
    tls_context(settings)  # what the driver raises of a file that is missing does not name it
    doing = f"connecting to Cassandra at {', '.join(settings.hosts)} port {settings.port}"
    with _explained(doing, settings), translated(doing), ExitStack() as unless_connected:
        cluster = Cluster(  # it resolves the host names once
            settings.hosts,
            port=settings.port,
            auth_provider=logins,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            connection_class=connection_class(partial(tls_context, settings), logins),
            reconnection_policy=reconnection_policy(),
            connect_timeout=settings.request_timeout,
            control_connection_timeout=settings.request_timeout,
        )
        unless_connected.callback(cluster.shutdown)
        session = cluster.connect()
        watch(session)
        unless_connected.pop_all()
    return read_dates_as_numbers(session)


@contextmanager
def _explained(doing: str, settings: CassandraSettings) -> Iterator[None]:
    """Say of a failed connection what the driver does not: a fault of TLS, in one line."""
    try:
        yield
    except Retryable as failed:
        cause = fault(settings, _addresses(settings))
        if cause is None:
            raise
        raise type(cause)(f"{doing}: {cause}") from failed


def _addresses(settings: CassandraSettings) -> Iterator[tuple[str, int]]:
    """The addresses of the contact points: the driver verifies these, not the names."""
    for host in settings.hosts:
        try:
            found = getaddrinfo(host, settings.port, type=SOCK_STREAM)
        except OSError:
            yield host, settings.port
        else:
            yield from ((str(each[4][0]), settings.port) for each in found)


def disconnect(settings: CassandraSettings) -> None:
    """Close this process's session, if it has one."""
    if connect.cache_info().currsize:
        connect(settings).cluster.shutdown()
        connect.cache_clear()


def levels_of(settings: CassandraSettings) -> Levels:
    """The consistency levels of the settings; a local data centre does not change them.

    A LOCAL_SERIAL read may complete a change that James has superseded at SERIAL
    (`tests/property/test_paxos.py`); a LOCAL_QUORUM read may miss what a QUORUM has written.
    """
    return levels(settings.consistency, settings.serial_consistency)


def store_of(session: Session, settings: CassandraSettings) -> Store:
    """Our own keyspace, over a session."""
    return Store(
        session,
        settings.own_keyspace,
        levels_of(settings),
        partitions_a_read=settings.partitions_per_read,
    )


def schema_of(session: Session, keyspace: str) -> Schema:
    """The column types by table, as the cluster has them now; empty if there is no keyspace."""
    found: Schema = defaultdict(dict)
    with translated(f"reading the schema of keyspace {keyspace}"):
        for row in session.execute(COLUMNS, (keyspace,)):
            found[row["table_name"]][row["column_name"]] = row["type"]
    return dict(found)
