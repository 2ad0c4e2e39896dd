"""The replication of keyspaces: over which data centres, in how many copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from reconcilers.words.errors import Misconfigured
from streaming.settings import CassandraSettings
from streaming.tables.session import connect

Replication = Mapping[str, str]
"""As Cassandra stores it: ``class``, and the copies by data centre or as ``replication_factor``."""
LEVELS = "set cassandra.consistency and cassandra.serial_consistency to James's own levels"


def replication_of(session: Session, keyspace: str) -> Replication:
    """The replication of a keyspace; empty if there is none. Raises `Unreachable`, `Refused`."""
    query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"
    with translated(f"reading how keyspace {keyspace} is replicated"):
        row = session.execute(query, (keyspace,)).one()
    return {} if row is None else dict(row["replication"])


def copies(replication: Replication) -> dict[str, int]:
    """Copies of each row by data centre; under an empty name if the strategy has no data centres.

    All copies of transient replication (3/1) count.
    """
    told = {name: value for name, value in replication.items() if name != "class"}
    if not replication.get("class", "").endswith("NetworkTopologyStrategy"):
        return {"": _number(told.get("replication_factor", "1"))} if replication else {}
    numbers = {name: _number(value) for name, value in told.items()}
    return {name: number for name, number in numbers.items() if number}


def data_centres(replication: Replication, of_nodes: Iterable[str]) -> frozenset[str]:
    """The data centres with copies; all of ``of_nodes`` if the strategy has no data centres."""
    found = copies(replication)
    return frozenset(of_nodes) if set(found) == {""} else frozenset(found)


def is_on_one_node(replication: Replication, of_nodes: Iterable[str]) -> bool:
    """Whether each row is on one node, and any node can have it; true if there is no keyspace.

    ``of_nodes`` are the data centres of the nodes.
    """
    everywhere = frozenset(of_nodes)
    one_copy = sum(copies(replication).values()) == 1
    return not replication or (one_copy and data_centres(replication, everywhere) == everywhere)


def why_levels_are_guessed(settings: CassandraSettings, where: frozenset[str]) -> str | None:
    """Why James's consistency levels are unknown, None if they are set or do not matter."""
    if len(where) < 2 or settings.levels_are_set:
        return None
    names = ", ".join(sorted(where))
    return f"keyspace {settings.keyspace} is in several data centres ({names}): {LEVELS}"


def refuse_guessed_levels(settings: CassandraSettings) -> None:
    """Raises `Misconfigured` if James's consistency levels matter and are not set."""
    session = connect(settings)
    nodes = (host.datacenter for host in session.cluster.metadata.all_hosts())
    where = data_centres(replication_of(session, settings.keyspace), nodes)
    why = why_levels_are_guessed(settings, where)
    if why is not None:
        raise Misconfigured(f"not in repair mode: {why} (default: QUORUM, SERIAL)")


def why_too_few_copies(settings: CassandraSettings, james: Replication, own: Replication) -> str:
    """What is wrong if our keyspace has fewer copies than James's; empty if nothing is."""
    theirs, ours = (max(copies(each).values(), default=0) for each in (james, own))
    if not own or ours >= theirs:
        return ""
    return (
        f"keyspace {settings.own_keyspace} has copies: {ours}, and {settings.keyspace} has"
        f" {theirs}: a lost node would take with it what is remembered"
    )


def more_copies(settings: CassandraSettings, james: Replication) -> str:
    """How to give our keyspace as many copies as James's."""
    name = james.get("class", "").rpartition(".")[2]
    numbers = {dc or "replication_factor": number for dc, number in copies(james).items()}
    told = ", ".join(f"'{key}': '{each}'" for key, each in {"class": name, **numbers}.items())
    return (
        f"stop the stream; ALTER KEYSPACE {settings.own_keyspace} WITH replication = {{{told}}};"
        f" nodetool repair --full {settings.own_keyspace} on each node"
        " (deploy/runbook.md, *Copies of our own keyspace*)"
    )


def refuse_too_few_copies(settings: CassandraSettings) -> None:
    """Raises `Misconfigured` if our keyspace has fewer copies of each row than James's."""
    session = connect(settings)
    james, own = (
        replication_of(session, each) for each in (settings.keyspace, settings.own_keyspace)
    )
    why = why_too_few_copies(settings, james, own)
    if why:
        raise Misconfigured(f"not in repair mode: {why}. Do this: {more_copies(settings, james)}")


def _number(told: str) -> int:
    return int(told.partition("/")[0])
