"""What nodes count about their work, and how much of it was in an interval. Pure.

Each node counts since its start. Two snapshots of a node give its work between them. If the node
was restarted in between, its counts restarted: the later snapshot is all from the interval, and the
work before the restart is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Metric(StrEnum):
    """A count. Replicas count local work, coordinators what clients requested."""

    READS = "reads"
    """Reads of a partition by a replica."""
    SCANS = "scans"
    """Reads of a range of partitions by a replica."""
    WRITES = "writes"
    """Writes by a replica."""
    ASKED_READS = "asked_reads"
    """Reads by clients, including lightweight transactions, which read their row."""
    ASKED_SCANS = "asked_scans"
    ASKED_WRITES = "asked_writes"
    """Writes by clients, without lightweight transactions."""
    PREPARES = "prepares"
    """First phase of a lightweight transaction or serial read, by each replica."""
    PREPARE_MICROS = "prepare_micros"
    PROPOSALS = "proposals"
    """Second phase. For a serial read or an unmet condition it proposes nothing."""
    PROPOSAL_MICROS = "proposal_micros"
    COMMITS = "commits"
    """Third phase, of a change that was agreed on."""
    COMMIT_MICROS = "commit_micros"
    FLUSHED = "flushed_bytes"
    COMPACTIONS = "compactions"
    COMPACTED_IN = "compacted_bytes_in"
    COMPACTED_OUT = "compacted_bytes_out"
    CAS_READS = "cas_reads"
    """Serial reads by clients, of all tables. Cassandra counts them by node."""
    CAS_READ_MICROS = "cas_read_micros"
    CAS_WRITES = "cas_writes"
    """Lightweight transactions by clients, of all tables, including those that changed nothing."""
    CAS_WRITE_MICROS = "cas_write_micros"
    REFUSED = "refused"
    """Lightweight transactions whose condition was not met."""
    CONTENDED_READS = "contended_reads"
    """Serial reads that restarted because of another one of the same partition."""
    CONTENDED_WRITES = "contended_writes"
    UNFINISHED = "unfinished"
    """Changes that another client had left unfinished, and that were finished for it."""
    TIMEOUTS = "timeouts"
    CPU_NANOS = "cpu_nanos"
    """Processor time of the node's process."""


BY_JMX = frozenset(
    {
        Metric.PREPARES,
        Metric.PREPARE_MICROS,
        Metric.PROPOSALS,
        Metric.PROPOSAL_MICROS,
        Metric.COMMITS,
        Metric.COMMIT_MICROS,
        Metric.FLUSHED,
    }
)
"""The counts of a table that only JMX reports."""

Table = tuple[str, str]
"""Keyspace and table."""
Counts = Mapping[Metric, int]


@dataclass(frozen=True, slots=True)
class Gauges:
    """Current values of a table: the 99th percentile of reads and writes (ms), its size (MiB).

    Cassandra weights latencies by age, so they are those of the last minutes. They are None if
    there were no operations or no report.
    """

    read_p99: float | None = None
    write_p99: float | None = None
    disk: int = 0

    def beside(self, other: Gauges) -> Gauges:
        """The gauges of two nodes: the higher latency, the sum of sizes."""
        return Gauges(
            _slower(self.read_p99, other.read_p99),
            _slower(self.write_p99, other.write_p99),
            self.disk + other.disk,
        )


def _slower(one: float | None, other: float | None) -> float | None:
    return max((each for each in (one, other) if each is not None), default=None)


@dataclass(frozen=True, slots=True)
class Compaction:
    """A finished compaction; sizes in bytes."""

    table: Table
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """What one node reported at one moment, counted since its start.

    ``started`` changes with each start. ``whole`` is of the node, empty if JMX did not answer.
    ``gaps`` says what is missing, one line each.
    """

    node: str
    started: int
    tables: Mapping[Table, Counts]
    whole: Counts
    compactions: Mapping[UUID, Compaction]
    gauges: Mapping[Table, Gauges]
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one or several nodes between two snapshots.

    ``told_lwt`` are the nodes that reported lightweight transactions; ``ever`` are the tables that
    had any since a node's start. ``by_node`` has what ``tables`` has, for each node.
    """

    nodes: frozenset[str]
    told_lwt: frozenset[str]
    tables: Mapping[Table, Counts]
    whole: Counts
    gauges: Mapping[Table, Gauges]
    ever: frozenset[Table]
    by_node: Mapping[str, Mapping[Table, Counts]]
    gaps: tuple[str, ...] = ()


def between(before: NodeSnapshot, after: NodeSnapshot) -> Work:
    """The work of a node between two of its snapshots."""
    again = before.started != after.started
    told = bool(after.whole) and (again or bool(before.whole))
    gaps = [*before.gaps, *after.gaps]
    if again:
        gaps.append(f"{after.node} was started again: what it did before that is not counted")
    tables = {
        table: Counter(_grown({} if again else before.tables.get(table, {}), counts))
        for table, counts in after.tables.items()
    }
    if not told:
        tables = {table: _without(counts, BY_JMX) for table, counts in tables.items()}
    for each in _new(before.compactions, after.compactions):
        tables.setdefault(each.table, Counter()).update(
            {
                Metric.COMPACTIONS: 1,
                Metric.COMPACTED_IN: each.bytes_in,
                Metric.COMPACTED_OUT: each.bytes_out,
            }
        )
    return Work(
        nodes=frozenset({after.node}),
        told_lwt=frozenset({after.node}) if told else frozenset(),
        tables=tables,
        whole=_grown({} if again else before.whole, after.whole) if told else {},
        gauges=after.gauges,
        ever=frozenset(t for t, counts in after.tables.items() if counts.get(Metric.PREPARES)),
        by_node={after.node: tables},
        gaps=tuple(dict.fromkeys(gaps)),
    )


def together(works: Iterable[Work], gaps: Iterable[str] = ()) -> Work:
    """The work of several nodes as one; ``gaps`` are about nodes that are left out."""
    tables: dict[Table, Counter[Metric]] = {}
    whole: Counter[Metric] = Counter()
    gauges: dict[Table, Gauges] = {}
    several = list(works)
    for work in several:
        whole.update(work.whole)
        for table, counts in work.tables.items():
            tables.setdefault(table, Counter()).update(counts)
        for table, shown in work.gauges.items():
            gauges[table] = gauges.get(table, Gauges()).beside(shown)
    return Work(
        nodes=frozenset(node for work in several for node in work.nodes),
        told_lwt=frozenset(node for work in several for node in work.told_lwt),
        tables=tables,
        whole=whole,
        gauges=gauges,
        ever=frozenset(table for work in several for table in work.ever),
        by_node={node: tables for work in several for node, tables in work.by_node.items()},
        gaps=tuple(dict.fromkeys([*gaps, *(gap for work in several for gap in work.gaps)])),
    )


def _grown(before: Counts, after: Counts) -> Counts:
    """The growth of counts; the later counts if one of them fell, because then all restarted."""
    anew = any(number < before.get(metric, 0) for metric, number in after.items())
    return {
        metric: number - (0 if anew else before.get(metric, 0)) for metric, number in after.items()
    }


def _without(counts: Counts, left_out: frozenset[Metric]) -> Counter[Metric]:
    return Counter({metric: n for metric, n in counts.items() if metric not in left_out})


def _new(
    before: Mapping[UUID, Compaction], after: Mapping[UUID, Compaction]
) -> Iterable[Compaction]:
    return (each for name, each in after.items() if name not in before)
