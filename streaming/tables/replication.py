"""How keyspaces are replicated: over which data centres, in how many copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from reconcilers.words.errors import Misconfigured
from streaming.settings import CassandraSettings
from streaming.tables.session import connect

Replication = Mapping[str, str]
"""As Cassandra tells it: ``class``, and a number of copies by data centre, or for all nodes."""
LEVELS = "set cassandra.consistency and cassandra.serial_consistency to James's own levels"


def replication_of(session: Session, keyspace: str) -> Replication:
    """Of a keyspace; empty when there is none. Raises `Unreachable`, `Refused`."""
    query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"
    with translated(f"reading how keyspace {keyspace} is replicated"):
        row = session.execute(query, (keyspace,)).one()
    return {} if row is None else dict(row["replication"])


def copies(replication: Replication) -> dict[str, int]:
    """Copies of each row by data centre; by an empty name where the strategy knows none.

    Of transient replication, written 3/1, all count.
    """
    told = {name: value for name, value in replication.items() if name != "class"}
    if not replication.get("class", "").endswith("NetworkTopologyStrategy"):
        return {"": _number(told.get("replication_factor", "1"))} if replication else {}
    numbers = {name: _number(value) for name, value in told.items()}
    return {name: number for name, number in numbers.items() if number}


def data_centres(replication: Replication, of_nodes: Iterable[str]) -> frozenset[str]:
    """Those that have copies; every one of the nodes' where the strategy knows none."""
    found = copies(replication)
    return frozenset(of_nodes) if set(found) == {""} else frozenset(found)


def is_on_one_node(replication: Replication, of_nodes: Iterable[str]) -> bool:
    """Whether each row is on one node only, and on any; ``of_nodes`` are their data centres.

    True of a keyspace that is not there.
    """
    everywhere = frozenset(of_nodes)
    one_copy = sum(copies(replication).values()) == 1
    return not replication or (one_copy and data_centres(replication, everywhere) == everywhere)


def why_levels_are_guessed(settings: CassandraSettings, where: frozenset[str]) -> str | None:
    """Why nobody knows James's levels, None where they are set or do not matter."""
    if len(where) < 2 or settings.levels_are_set:
        return None
    names = ", ".join(sorted(where))
    return f"keyspace {settings.keyspace} is in several data centres ({names}): {LEVELS}"


def refuse_guessed_levels(settings: CassandraSettings) -> None:
    """Raises `Misconfigured` where James's levels matter and are not set."""
    session = connect(settings)
    nodes = (host.datacenter for host in session.cluster.metadata.all_hosts())
    where = data_centres(replication_of(session, settings.keyspace), nodes)
    why = why_levels_are_guessed(settings, where)
    if why is not None:
        raise Misconfigured(f"not in repair mode: {why} (default: QUORUM, SERIAL)")


def _number(told: str) -> int:
    return int(told.partition("/")[0])
