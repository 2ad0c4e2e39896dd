"""Notices that all nodes have moved: a session resolves the names of its contact points once."""

from __future__ import annotations

from threading import Event

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from reconcilers.words.errors import EndedItself, Refused, Retryable
from streaming.settings import CassandraSettings
from streaming.tables.session import connect, open_session

LOOK_EVERY = 30.0
"""Seconds; a node that went away and came back is found by the session itself within 15."""


def watch_addresses(settings: CassandraSettings, stop: Event) -> None:
    """For a thread, until told to stop. Raises `EndedItself` as `refuse_moved_nodes` does."""
    while not stop.wait(LOOK_EVERY):
        refuse_moved_nodes(settings)


def refuse_moved_nodes(settings: CassandraSettings) -> None:
    """Raises `EndedItself` where Cassandra is at addresses that this process does not know.

    No node that its session knows answers, and a session made anew finds others. The workers hold
    sessions, too: only a new process replaces all of them.
    """
    session = connect(settings)
    if _answers(session):
        return
    try:
        anew = open_session(settings)
    except (Retryable, Refused):
        return  # Cassandra is away, and not elsewhere
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
