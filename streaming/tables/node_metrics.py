"""What each node counts of its tables, from the virtual tables of Cassandra 4.

They describe the node that answers. `streaming.commands.lwt.beans` reads what they lack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cassandra.cluster import Session
from cassandra.pool import Host

from checkpoints.cassandra.driver_errors import translated
from reconcilers.lwt.placement import ANYWHERE
from reconcilers.lwt.statements import Compaction, Counts, Metric, Table
from reconcilers.words.errors import Refused, Unreachable
from streaming.settings import CassandraSettings
from streaming.tables.replication import copies
from streaming.tables.session import open_session, schema_of

LATENCIES = {
    "local_read_latency": Metric.READS,
    "local_scan_latency": Metric.SCANS,
    "local_write_latency": Metric.WRITES,
    "coordinator_read_latency": Metric.ASKED_READS,
    "coordinator_scan_latency": Metric.ASKED_SCANS,
    "coordinator_write_latency": Metric.ASKED_WRITES,
}
HISTORY = "SELECT id, keyspace_name, columnfamily_name, bytes_in, bytes_out FROM {}"
COMPACTIONS = "system.compaction_history"


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """The counts of one node; ``disk`` is in MiB, ``compactions`` None without the right to read.

    Latencies are left out: the views' ``p99th_ms`` is a thousandth of it (seen with 5.0.9).
    """

    node: str
    host_id: str
    started: int
    tables: Mapping[Table, Counts]
    disk: Mapping[Table, int]
    compactions: Mapping[UUID, Compaction] | None


class NodeMetrics:
    """Reads metrics from each node that the driver lists."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def tables(self, keyspace: str) -> frozenset[str]:
        """The tables of a keyspace; none if it does not exist."""
        return frozenset(schema_of(self._session, keyspace))

    def centres(self) -> dict[str, str]:
        """The data centre of each node, by address."""
        hosts = self._session.cluster.metadata.all_hosts()
        return {host.address: str(host.datacenter) for host in hosts}

    def copies(self) -> dict[str, dict[str, int]]:
        """By keyspace how many copies of each row it has in each data centre."""
        query = "SELECT keyspace_name, replication FROM system_schema.keyspaces"
        with translated("reading how keyspaces are replicated"):
            rows = list(self._session.execute(query))
        told = {row["keyspace_name"]: copies(row["replication"]) for row in rows}
        return {name: copies or {ANYWHERE: 1} for name, copies in told.items()}

    def addresses(self) -> dict[str, str]:
        """The nodes' addresses by host id."""
        hosts = self._session.cluster.metadata.all_hosts()
        return {str(host.host_id): host.address for host in hosts}

    def paxos_variant(self) -> str:
        """A node's setting ``paxos_variant``, "unknown" if it has none."""
        query = "SELECT value FROM system_views.settings WHERE name = 'paxos_variant'"
        with translated("reading the setting paxos_variant"):
            row = self._session.execute(query).one()
        return str(row["value"]) if row and row["value"] else "unknown"

    def of(self, node: str) -> NodeCounts:
        """The counts of the node at an address.

        Raises `Unreachable` if it does not answer, `Refused` without SELECT on system_views.
        """
        host = self._host(node)
        if host.is_up is False:
            raise Unreachable(f"{node} does not answer")
        counts: dict[Table, dict[Metric, int]] = {}
        for view, metric in LATENCIES.items():
            for row in self._ask(host, f"SELECT * FROM system_views.{view}"):
                table = row["keyspace_name"], row["table_name"]
                counts.setdefault(table, {})[metric] = row["count"] or 0
        disk = {
            (row["keyspace_name"], row["table_name"]): row["mebibytes"]
            for row in self._ask(host, "SELECT * FROM system_views.disk_usage")
        }
        return NodeCounts(
            node=node,
            host_id=str(host.host_id),
            started=self._ask(host, "SELECT gossip_generation FROM system.local")[0][
                "gossip_generation"
            ],
            tables=counts,
            disk=disk,
            compactions=self._compactions(host),
        )

    def _compactions(self, host: Host) -> dict[UUID, Compaction] | None:
        try:
            rows = self._ask(host, HISTORY.format(COMPACTIONS))
        except Refused:
            return None
        return {
            row["id"]: Compaction(
                (row["keyspace_name"], row["columnfamily_name"]), row["bytes_in"], row["bytes_out"]
            )
            for row in rows
        }

    def _host(self, node: str) -> Host:
        hosts = self._session.cluster.metadata.all_hosts()
        found = [host for host in hosts if host.address == node]
        if not found:
            raise Unreachable(f"{node} is no longer in the cluster")
        return found[0]

    def _ask(self, host: Host, query: str) -> list[Mapping[str, Any]]:
        with translated(f"asking {host.address} for its metrics"):
            return list(self._session.execute(query, host=host))


@contextmanager
def node_metrics(settings: CassandraSettings) -> Iterator[NodeMetrics]:
    """Metrics over a session that is closed at the end. Raises as `open_session` does."""
    session = open_session(settings)
    try:
        yield NodeMetrics(session)
    finally:
        session.cluster.shutdown()
