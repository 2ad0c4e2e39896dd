"""What nodes count of their work, and how much of it fell into an interval.

Cassandra counts since a node's start, each node for itself. Two snapshots of a node tell what it
did between them. Where the node was started in between, its counts began anew: all that it tells
afterwards was done in the interval, and what it did before its end is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Metric(StrEnum):
    """What is counted. Replicas count local work, coordinators what clients asked for."""

    READS = "reads"
    """Reads of a partition by a replica."""
    SCANS = "scans"
    """Reads of a range of partitions by a replica."""
    WRITES = "writes"
    """By a replica."""
    ASKED_READS = "asked_reads"
    """By clients; each lightweight transaction counts here, too, for it reads the row."""
    ASKED_SCANS = "asked_scans"
    ASKED_WRITES = "asked_writes"
    """By clients, without lightweight transactions."""
    PREPARES = "prepares"
    """First phase of a lightweight transaction or serial read, by each replica."""
    PREPARE_MICROS = "prepare_micros"
    PROPOSALS = "proposals"
    """Second phase; of a serial read, and of a condition that is not met, it proposes nothing."""
    PROPOSAL_MICROS = "proposal_micros"
    COMMITS = "commits"
    """Third phase, of a change that was agreed on."""
    COMMIT_MICROS = "commit_micros"
    FLUSHED = "flushed_bytes"
    COMPACTIONS = "compactions"
    COMPACTED_IN = "compacted_bytes_in"
    COMPACTED_OUT = "compacted_bytes_out"
    CAS_READS = "cas_reads"
    """Serial reads by clients, of all tables: so Cassandra counts them, by node."""
    CAS_READ_MICROS = "cas_read_micros"
    CAS_WRITES = "cas_writes"
    """Lightweight transactions by clients, of all tables, also those that changed nothing."""
    CAS_WRITE_MICROS = "cas_write_micros"
    REFUSED = "refused"
    """Lightweight transactions whose condition was not met."""
    CONTENDED_READS = "contended_reads"
    """Serial reads that had to begin again because of another of the same partition."""
    CONTENDED_WRITES = "contended_writes"
    UNFINISHED = "unfinished"
    """Changes that another had left unfinished, and that were finished for it."""
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
"""What of a table is told by JMX only."""

Table = tuple[str, str]
"""Keyspace and table."""
Counts = Mapping[Metric, int]


@dataclass(frozen=True, slots=True)
class Gauges:
    """What a table shows now: the slowest in a hundred reads and writes (ms), its size (MiB).

    Cassandra gives the latencies a weight by age: they are those of the last minutes. They are None
    where there were none, or nobody tells.
    """

    read_p99: float | None = None
    write_p99: float | None = None
    disk: int = 0

    def beside(self, other: Gauges) -> Gauges:
        """Of two nodes: the slower, and both sizes."""
        return Gauges(
            _slower(self.read_p99, other.read_p99),
            _slower(self.write_p99, other.write_p99),
            self.disk + other.disk,
        )


def _slower(one: float | None, other: float | None) -> float | None:
    return max((each for each in (one, other) if each is not None), default=None)


@dataclass(frozen=True, slots=True)
class Compaction:
    """One that has ended; sizes in bytes."""

    table: Table
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """What one node told at one moment, counted since its start.

    ``started`` is another number after each start. ``whole`` is of the node, and empty where JMX
    was not answered. ``gaps``: what could not be had, a line each.
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
    """What was done between two snapshots, by one node or several.

    ``told_lwt`` are the nodes that told of lightweight transactions; ``ever`` are the tables that
    had any since a node's start.
    """

    nodes: frozenset[str]
    told_lwt: frozenset[str]
    tables: Mapping[Table, Counts]
    whole: Counts
    gauges: Mapping[Table, Gauges]
    ever: frozenset[Table]
    gaps: tuple[str, ...] = ()


def between(before: NodeSnapshot, after: NodeSnapshot) -> Work:
    """What the node did between two snapshots of it."""
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
        gaps=tuple(dict.fromkeys(gaps)),
    )


def together(works: Iterable[Work], gaps: Iterable[str] = ()) -> Work:
    """The work of several nodes as one; ``gaps`` are of nodes that are left out."""
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
        gaps=tuple(dict.fromkeys([*gaps, *(gap for work in several for gap in work.gaps)])),
    )


def _grown(before: Counts, after: Counts) -> Counts:
    """By how much counts grew; all of them where one is lower: then all of them began anew."""
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
