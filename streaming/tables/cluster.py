"""What an operator's command reads of a cluster, and the few changes that an admin makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cassandra.cluster import Session

from checkpoints.cassandra import Store
from checkpoints.cassandra.driver_errors import translated
from reconcilers.counters.live_table import Choice
from reconcilers.declared.family import Family, Schema
from reconcilers.declared.tally import Tally
from reconcilers.rows.table_use import ListingUse
from streaming.settings import CassandraSettings
from streaming.tables.live_tables import SAMPLE, choice_of, sample_of
from streaming.tables.nodes import Nodes
from streaming.tables.recent_writes import RecentWrites
from streaming.tables.replication import Replication, replication_of
from streaming.tables.session import open_session, schema_of, store_of
from streaming.tables.table_uses import use_of


class Cluster:
    """One session for one command. The driver's errors are raised as `reconcilers.words.errors`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def schema(self, keyspace: str) -> Schema:
        """Column types by table; empty when there is no such keyspace."""
        return schema_of(self._session, keyspace)

    def store(self, settings: CassandraSettings) -> Store:
        """Our own keyspace, over this session."""
        return store_of(self._session, settings)

    def clocks(self) -> dict[str, float]:
        """How far (s) each node's clock is ahead of ours, by address."""
        return Nodes(self._session).clocks()

    def nodes(self) -> dict[str, str]:
        """The nodes' addresses by host id."""
        hosts = self._session.cluster.metadata.all_hosts()
        return {str(host.host_id): host.address for host in hosts}

    def data_centres(self) -> frozenset[str]:
        """The data centres of all nodes."""
        return frozenset(host.datacenter for host in self._session.cluster.metadata.all_hosts())

    def replication(self, keyspace: str) -> Replication:
        """The replication of a keyspace; empty when it does not exist."""
        return replication_of(self._session, keyspace)

    def tables_with_cdc(self, keyspace: str) -> frozenset[str]:
        """The tables of a keyspace with change capture turned on."""
        query = "SELECT table_name, cdc FROM system_schema.tables WHERE keyspace_name = %s"
        with translated("reading which tables have CDC"):
            rows = self._session.execute(query, (keyspace,))
            return frozenset(row["table_name"] for row in rows if row["cdc"])

    def gc_grace(self, keyspace: str) -> dict[str, int]:
        """The gc_grace_seconds of each table of a keyspace."""
        query = "SELECT table_name, gc_grace_seconds FROM system_schema.tables"
        with translated("reading the tables' settings"):
            rows = self._session.execute(f"{query} WHERE keyspace_name = %s", (keyspace,))
            return {row["table_name"]: row["gc_grace_seconds"] for row in rows}

    def node_settings(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """By node the settings with these names. Raises `Refused` without SELECT on them."""
        query = "SELECT name, value FROM system_views.settings WHERE name = %s"
        wanted = tuple(names)
        told: dict[str, dict[str, str]] = {}
        for host in self._session.cluster.metadata.all_hosts():
            with translated(f"reading the settings of {host.address}"):
                rows = [self._session.execute(query, (name,), host=host).one() for name in wanted]
            told[host.address] = {
                row["name"]: row["value"] for row in rows if row and row["value"] is not None
            }
        return told

    def estimated_partitions(self, keyspace: str, table: str) -> int:
        """Cassandra's estimate of a table's partitions, summed over nodes; 0 before its first."""
        query = "SELECT partitions_count FROM system.size_estimates"
        query += " WHERE keyspace_name = %s AND table_name = %s"
        rows = (row for _, row in self._of_nodes(query, (keyspace, table)))
        return sum(row["partitions_count"] for row in rows)

    def disk_usage(self, keyspace: str) -> dict[str, float]:
        """The MiB of a keyspace on each node. Raises `Refused` without SELECT on system_views."""
        query = "SELECT mebibytes FROM system_views.disk_usage WHERE keyspace_name = %s"
        taken: dict[str, float] = defaultdict(float)
        for node, row in self._of_nodes(f"{query} ALLOW FILTERING", (keyspace,)):
            taken[node] += row["mebibytes"]
        return dict(taken)

    def _of_nodes(
        self, query: str, values: tuple[str, ...]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The rows of each node's local table, with the node's address."""
        for host in self._session.cluster.metadata.all_hosts():
            with translated(f"asking {host.address}: {query}"):
                for row in self._session.execute(query, values, host=host):
                    yield host.address, row

    def has_rows(self, keyspace: str, table: str) -> bool:
        """Whether a table has a row; reads one. Raises `Refused` if the role may not read it."""
        with translated(f"reading {keyspace}.{table}"):
            found = self._session.execute(f"SELECT * FROM {keyspace}.{table} LIMIT 1")
            return found.one() is not None

    def recent_writes(self, keyspace: str) -> RecentWrites:
        """Reads of rows with their write times."""
        return RecentWrites(self._session, keyspace)

    def some(self, keyspace: str, table: str, column: str) -> list[Any]:
        """A column's values in `SAMPLE` rows. Raises `Refused` if the role may not read it."""
        with translated(f"reading {keyspace}.{table}"):
            query = f"SELECT {column} FROM {keyspace}.{table} LIMIT {SAMPLE}"
            return [row[column] for row in self._session.execute(query)]

    def sample(self, keyspace: str, tally: Tally) -> list[dict[str, Any]]:
        """Some rows of a tally's table. Raises `Refused` if the role may not read it."""
        return sample_of(self._session, keyspace, tally)

    def choice(self, keyspace: str, shapes: Sequence[Tally]) -> Choice:
        """Which of these tables James writes."""
        return choice_of(self._session, keyspace, shapes)

    def use_of(self, settings: CassandraSettings, family: Family) -> ListingUse:
        """How James uses the table of a bound family's listing. Raises as `table_uses.use_of`."""
        return use_of(self._session, settings, family)

    def is_superuser(self, role: str) -> bool:
        """Whether a role is a superuser. Raises `Refused` if the cluster does not use roles."""
        with translated(f"asking what role {role} is"):
            rows = list(self._session.execute(f"LIST ROLES OF {_quoted(role)}"))
        return any(row["super"] for row in rows)

    def permissions(self, role: str) -> frozenset[tuple[str, str]]:
        """The rights of a role, such as ``("SELECT", "<table apache_james.imapuidtable>")``."""
        with translated(f"listing the rights of role {role}"):
            rows = list(self._session.execute(f"LIST ALL PERMISSIONS OF {_quoted(role)}"))
        return frozenset((row["permission"], row["resource"]) for row in rows)

    def run(self, statement: str) -> None:
        """Run a statement that changes the schema or grants a right. Raises `Refused`."""
        with translated(statement):
            self._session.execute(statement, timeout=60)


def _quoted(role: str) -> str:
    return '"' + role.replace('"', '""') + '"'


@contextmanager
def logged_in(settings: CassandraSettings) -> Iterator[Cluster]:
    """A session for one command, closed at the end. Raises as `open_session` does."""
    session = open_session(settings)
    try:
        yield Cluster(session)
    finally:
        session.cluster.shutdown()
