"""A Cassandra of its own for measurements: nothing beside it, and it may be restarted."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cassandra.cluster import Session
from cassandra.policies import ConstantReconnectionPolicy

from deploy.embedded import jars
from deploy.embedded.cassandra_node import CassandraNode
from deploy.embedded.interrupts import held_back
from deploy.embedded.layout import Layout
from deploy.embedded.spec import CassandraRelease, Wanted, decide
from tests.processes import spent_by
from tests.sessions import session_at

NO_SESSION = -1
"""Of processes: none has this one."""


@dataclass(frozen=True)
class LoneNode:
    """A running Cassandra, a driver session that comes back by itself, a keyspace for the run."""

    server: CassandraNode
    session: Session
    keyspace: str

    def spent(self) -> float:
        """Seconds of CPU since it was started."""
        pid = self.server.daemon.pid()
        assert pid is not None, self.server.daemon.last_words()
        return spent_by({"Cassandra": pid}, NO_SESSION)["Cassandra"]

    def start(self) -> None:
        """Start it again, and wait until it answers."""
        self.server.launch()
        self.server.await_ready()


@contextmanager
def lone_node(data: Path, release: CassandraRelease) -> Iterator[LoneNode]:
    """Caches as of a production node; no copy of it runs after."""
    layout = Layout(data)
    spec = decide(layout, Wanted(release=release, tables=("none",), caches="production"))
    jars.fetch((f"cassandra-{release}",))
    server = CassandraNode(layout, spec)
    try:
        server.launch()
        server.await_ready()
        again = ConstantReconnectionPolicy(1.0, max_attempts=None)
        with session_at("127.0.0.1", spec.ports.cassandra, reconnection_policy=again) as session:
            keyspace = new_keyspace(session)
            yield LoneNode(server, session, keyspace)
    finally:
        with held_back():
            server.stop()


def new_keyspace(session: Session) -> str:
    """A keyspace of one copy that nobody else uses."""
    keyspace = f"counting_{uuid.uuid4().hex[:8]}"
    session.execute(
        f"CREATE KEYSPACE {keyspace} WITH replication ="
        " {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    return keyspace
