"""Detects that all nodes have new addresses: a session resolves its contact points only once."""

from __future__ import annotations

from threading import Event

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from reconcilers.words.errors import EndedItself, Refused, Retryable
from streaming.settings import CassandraSettings
from streaming.tables.session import connect, open_session

LOOK_EVERY = 30.0
"""Seconds between two checks; the session itself finds a node that came back within 15."""


def watch_addresses(settings: CassandraSettings, stop: Event) -> None:
    """Check in a thread until ``stop`` is set. Raises as `refuse_moved_nodes` does."""
    while not stop.wait(LOOK_EVERY):
        refuse_moved_nodes(settings)


def refuse_moved_nodes(settings: CassandraSettings) -> None:
    """Raises `EndedItself` if no node of the session answers, and a new session finds other nodes.

    The workers hold sessions too: only a new process replaces all of them.
    """
    session = connect(settings)
    if _answers(session):
        return
    try:
        anew = open_session(settings)
    except (Retryable, Refused):
        return  # Cassandra is down, not moved
    try:
        up = {host.endpoint for host in anew.cluster.metadata.all_hosts() if host.is_up}
    finally:
        anew.cluster.shutdown()
    if up and not up & {host.endpoint for host in session.cluster.metadata.all_hosts()}:
        where = ", ".join(sorted(str(each) for each in up))
        raise EndedItself(f"Cassandra's nodes have moved: {where} answer, and no node known before")


def _answers(session: Session) -> bool:
    try:
        with translated("asking whether Cassandra answers"):
            session.execute("SELECT key FROM system.local")
    except Refused:
        return True
    except Retryable:
        return False
    return True
