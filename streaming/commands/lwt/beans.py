"""A Cassandra node's counts of lightweight transactions: MBeans, read over JMX.

Names and meanings are those of Cassandra's *Monitoring* page, equal in 4.1 and 5.0.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconcilers.lwt.statements import Counts, Gauges, Metric, Table
from reconcilers.words.errors import Unreachable
from streaming.commands.lwt.jvm import Jvm, java_errors

METRICS = "org.apache.cassandra.metrics"
PHASES = {
    "CasPrepare": (Metric.PREPARES, Metric.PREPARE_MICROS),
    "CasPropose": (Metric.PROPOSALS, Metric.PROPOSAL_MICROS),
    "CasCommit": (Metric.COMMITS, Metric.COMMIT_MICROS),
}
"""Of a table: a timer of this name and ``Latency``, and a counter with ``TotalLatency`` (µs)."""
REQUESTS = (
    ("CASRead", "Latency", Metric.CAS_READS),
    ("CASRead", "TotalLatency", Metric.CAS_READ_MICROS),
    ("CASRead", "ContentionHistogram", Metric.CONTENDED_READS),
    ("CASRead", "UnfinishedCommit", Metric.UNFINISHED),
    ("CASRead", "Timeouts", Metric.TIMEOUTS),
    ("CASWrite", "Latency", Metric.CAS_WRITES),
    ("CASWrite", "TotalLatency", Metric.CAS_WRITE_MICROS),
    ("CASWrite", "ContentionHistogram", Metric.CONTENDED_WRITES),
    ("CASWrite", "UnfinishedCommit", Metric.UNFINISHED),
    ("CASWrite", "Timeouts", Metric.TIMEOUTS),
    ("CASWrite", "ConditionNotMet", Metric.REFUSED),
)
"""Of the node as a coordinator; the two that are called the same are added."""


@dataclass(frozen=True, slots=True)
class JmxLogin:
    """The address and login for a node's JMX; with ``ca`` by TLS, as `nodetool --ssl`."""

    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: Path | None = None

    @property
    def place(self) -> str:
        """The address, for messages."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class NodeBeans:
    """The answer of one node: its host id, and counts since its start.

    ``gauges`` have latencies, no sizes.
    """

    host_id: str
    tables: Mapping[Table, Counts]
    whole: Counts
    gauges: Mapping[Table, Gauges] = field(default_factory=dict)


def beans_of(jvm: Jvm, login: JmxLogin, patience: float) -> NodeBeans:
    """Read one node within ``patience`` (s). Raises `Unreachable`; `Refused` for a wrong login."""
    with java_errors(f"JMX at {login.place}"), _connected(jvm, login, patience) as beans:
        tables = _tables(beans)
        return NodeBeans(
            host_id=beans.get("org.apache.cassandra.db:type=StorageService", "LocalHostId"),
            tables=tables,
            whole=_whole(beans),
            gauges={
                table: Gauges(
                    _p99(beans, table, "CoordinatorReadLatency"),
                    _p99(beans, table, "CoordinatorWriteLatency"),
                )
                for table in tables
            },
        )


class _Beans:
    """The MBeans of one node, over an open connection."""

    def __init__(self, jvm: Jvm, connection: Any) -> None:
        self._name = jvm.java.javax.management.ObjectName
        self._connection = connection

    def get(self, bean: str, attribute: str = "Count") -> Any:
        return self._connection.getAttribute(self._name(bean), attribute)

    def names(self, pattern: str) -> list[str]:
        return [each.toString() for each in self._connection.queryNames(self._name(pattern), None)]


@contextmanager
def _connected(jvm: Jvm, login: JmxLogin, patience: float) -> Iterator[_Beans]:
    try:  # Java would wait for minutes where nobody answers
        socket.create_connection((login.host, login.port), patience).close()
    except OSError as failed:
        raise Unreachable(f"nothing answers JMX at {login.place} ({failed})") from failed
    host = f"[{login.host}]" if ":" in login.host else login.host
    remote = jvm.java.javax.management.remote
    url = remote.JMXServiceURL(f"service:jmx:rmi:///jndi/rmi://{host}:{login.port}/jmxrmi")
    surroundings = jvm.java.java.util.HashMap()
    if login.username is not None:
        credentials = jvm.strings(login.username, login.password or "")
        surroundings.put("jmx.remote.credentials", credentials)
    if login.ca is not None:
        surroundings.put("com.sun.jndi.rmi.factory.socket", jvm.trust(login.ca))
    connector = remote.JMXConnectorFactory.connect(url, surroundings)
    try:
        yield _Beans(jvm, connector.getMBeanServerConnection())
    finally:
        connector.close()


def _tables(beans: _Beans) -> dict[Table, Counts]:
    """Counts by table. A table without lightweight transactions has only those of flushes."""
    found: dict[Table, Counts] = {}
    for name in beans.names(f"{METRICS}:type=Table,keyspace=*,scope=*,name=CasPrepareLatency"):
        keys = dict(part.split("=", 1) for part in name.partition(":")[2].split(","))
        table = keys["keyspace"], keys["scope"]
        counts = {Metric.FLUSHED: _of_table(beans, table, "BytesFlushed")}
        if _of_table(beans, table, "CasPrepareLatency"):
            for phase, (times, micros) in PHASES.items():
                counts[times] = _of_table(beans, table, f"{phase}Latency")
                counts[micros] = _of_table(beans, table, f"{phase}TotalLatency")
        found[table] = counts
    return found


def _p99(beans: _Beans, table: Table, name: str) -> float | None:
    """The 99th percentile in ms, of a timer in µs; None if nothing was timed."""
    if not _of_table(beans, table, name):
        return None
    return float(beans.get(_bean(table, name), "99thPercentile")) / 1e3


def _of_table(beans: _Beans, table: Table, name: str) -> int:
    return int(beans.get(_bean(table, name)))


def _bean(table: Table, name: str) -> str:
    keyspace, scope = table
    return f"{METRICS}:type=Table,keyspace={keyspace},scope={scope},name={name}"


def _whole(beans: _Beans) -> Counts:
    counts = {Metric.CPU_NANOS: int(beans.get("java.lang:type=OperatingSystem", "ProcessCpuTime"))}
    for scope, name, metric in REQUESTS:
        told = int(beans.get(f"{METRICS}:type=ClientRequest,scope={scope},name={name}"))
        counts[metric] = counts.get(metric, 0) + told
    return counts
