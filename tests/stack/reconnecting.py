"""A driver session for tests in which Cassandra goes away."""

from contextlib import AbstractContextManager

from cassandra.cluster import Session
from cassandra.policies import ConstantReconnectionPolicy

from deploy.embedded import Stack
from tests.sessions import session_at


def reconnecting(stack: Stack) -> AbstractContextManager[Session]:
    """Connects again by itself, a second after Cassandra is back."""
    again = ConstantReconnectionPolicy(1.0, max_attempts=None)
    return session_at(
        "127.0.0.1", stack.cassandra_port, reconnection_policy=again, protocol_version=5
    )
