"""The cost of lightweight transactions, from the work of some nodes in an interval. Pure.

Cassandra stores promises and proposals in its table `system.paxos`. Each phase of each lightweight
transaction and each serial read works on that table, which is their cost besides the tables
themselves. Replicas count phases by table. Serial reads and unmet conditions are counted by node
only, for all tables together. By table those two are therefore reported as a range, which is exact
if no other table can have had them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from reconcilers.lwt.placement import Placement, Range, Reach, exactly
from reconcilers.lwt.statements import Counts, Gauges, Metric, Table, Work

PAXOS: Table = ("system", "paxos")
SHARED = {
    "reads": (Metric.READS, Metric.SCANS),
    "writes": (Metric.WRITES,),
    "compactions": (Metric.COMPACTIONS,),
    "compacted bytes": (Metric.COMPACTED_OUT,),
    "flushed bytes": (Metric.FLUSHED,),
}
"""By name the kinds of replica work in which `system.paxos` is compared with all tables."""


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a kind of work was done on `system.paxos`, and how much on all tables."""

    paxos: int
    everything: int

    @property
    def part(self) -> float | None:
        """From 0 to 1; None if no work was done."""
        return self.paxos / self.everything if self.everything else None


class Once(NamedTuple):
    """The operations on one table that came to each phase, each counted once."""

    prepared: Range
    proposed: Range
    committed: Range

    @property
    def unchanged(self) -> Range:
        """The operations that prepared and changed nothing."""
        return self.prepared.without(self.committed)


@dataclass(frozen=True, slots=True)
class TableWork:
    """The work on one table in the interval. Operations are counted once, not for each copy."""

    table: Table
    counts: Counts
    gauges: Gauges
    once: Once
    serial_reads: Range
    refused: Range
    phases_share: float

    @property
    def rounds(self) -> Range:
        """The rounds that prepared."""
        return self.once.prepared

    @property
    def changed(self) -> Range:
        """The number of lightweight transactions that were applied."""
        return self.once.committed

    @property
    def unchanged(self) -> Range:
        """The rounds that changed nothing: serial reads, unmet conditions, lost rounds."""
        return self.once.unchanged

    @property
    def ordinary_reads(self) -> Range:
        """Reads by key or range, without those that a lightweight transaction makes of its row."""
        asked = self.counts.get(Metric.ASKED_READS, 0) + self.counts.get(Metric.ASKED_SCANS, 0)
        return exactly(asked).without(self.once.proposed)

    @property
    def ordinary_writes(self) -> int:
        """The writes that clients requested, without lightweight transactions."""
        return self.counts.get(Metric.ASKED_WRITES, 0)

    def mean_ms(self, times: Metric, micros: Metric) -> float | None:
        """The mean time of a phase on a replica, in ms; None if there was none."""
        return mean_ms(self.counts, times, micros)


@dataclass(frozen=True, slots=True)
class Cost:
    """The report; ``tables`` by falling phases; ``confirmed``: our suspects, None if unknown."""

    seconds: float
    work: Work
    tables: tuple[TableWork, ...]
    shares: Mapping[str, Share]
    confirmed: int | None = None

    @property
    def known_by_table(self) -> bool:
        """Whether all nodes reported lightweight transactions."""
        return self.work.told_lwt == self.work.nodes

    @property
    def disk(self) -> int:
        """The size of `system.paxos` on all nodes, MiB; each node rounds up."""
        return self.work.gauges.get(PAXOS, Gauges()).disk


def mean_ms(counts: Counts, times: Metric, micros: Metric) -> float | None:
    """The mean of a timed phase, in ms; None if there was none."""
    number = counts.get(times, 0)
    return counts.get(micros, 0) / number / 1000 if number else None


def cost_of(work: Work, placement: Placement, seconds: float) -> Cost:
    """The report of an interval, with the nodes and copies of the cluster."""
    tables = [table for table, counts in work.tables.items() if any(counts.values())]
    once = {table: _phases_once(work, placement, table) for table in tables}
    idle = {table: each.unchanged for table, each in once.items()}
    phases = sum(_phases(counts) for counts in work.tables.values())
    found = (
        TableWork(
            table=table,
            counts=work.tables[table],
            gauges=work.gauges.get(table, Gauges()),
            once=once[table],
            serial_reads=_range(table, idle, work, Metric.CAS_READS),
            refused=_range(table, idle, work, Metric.REFUSED),
            phases_share=_phases(work.tables[table]) / phases if phases else 0.0,
        )
        for table in tables
    )
    return Cost(
        seconds=seconds,
        work=work,
        tables=tuple(sorted(found, key=lambda each: (-_phases(each.counts), each.table))),
        shares={name: _share(work, metrics) for name, metrics in SHARED.items()},
    )


def _phases_once(work: Work, placement: Placement, table: Table) -> Once:
    """The operations on a table by phase."""

    def once(metric: Metric, reach: Reach) -> Range:
        counted = {
            node: tables.get(table, {}).get(metric, 0)
            for node, tables in work.by_node.items()
            if node in work.told_lwt
        }
        return placement.operations(table[0], counted, reach)

    changed = once(Metric.COMMITS, Reach.ALL)
    rounds = once(Metric.PREPARES, placement.prepares)
    rounds = Range(max(rounds.low, changed.low), max(rounds.high, changed.high))
    return Once(rounds, once(Metric.PROPOSALS, placement.prepares), changed)


def sentence(cost: Cost, keyspace: str) -> str:
    """One sentence: the share of the load that lightweight transactions cause, by table."""
    told = [
        f"{share.part:.0%} of this cluster's {name}"
        for name, share in cost.shares.items()
        if share.part is not None and name in ("reads", "writes", "compacted bytes")
    ]
    if not cost.work.told_lwt:
        part = f"system.paxos took {_listed(told)} in {cost.seconds:.0f} s" if told else NO_WORK
        return f"{part}; by which tables is not known, for no node was asked over JMX."
    if not any(_phases(each.counts) for each in cost.tables):
        return f"No lightweight transaction and no serial read ran in {cost.seconds:.0f} s."
    causes = [
        f"{_name(each.table, keyspace)} {each.phases_share:.0%}"
        for each in cost.tables
        if each.phases_share >= 0.005
    ]
    nodes = len(cost.work.told_lwt)
    of = "" if cost.known_by_table else f", as told by {nodes} of {len(cost.work.nodes)} nodes"
    return (
        f"Lightweight transactions and serial reads caused {_listed(told)}"
        f" in {cost.seconds:.0f} s (system.paxos alone), by table: {', '.join(causes)}{of}."
    )


NO_WORK = "Nothing was read or written"


def _name(table: Table, keyspace: str) -> str:
    return table[1] if table[0] == keyspace else ".".join(table)


def _listed(parts: list[str]) -> str:
    first, last = parts[:-1], parts[-1:]
    return " and ".join([", ".join(first), *last] if first else last)


def _share(work: Work, metrics: tuple[Metric, ...]) -> Share:
    def done(counts: Counts) -> int:
        return sum(counts.get(metric, 0) for metric in metrics)

    return Share(
        done(work.tables.get(PAXOS, {})), sum(done(counts) for counts in work.tables.values())
    )


def _range(table: Table, idle: Mapping[Table, Range], work: Work, metric: Metric) -> Range:
    """The range of one table's part in a number of all tables: other tables had the rest.

    Clients' requests to nodes that did not report are not in that number.
    """
    number = work.whole.get(metric, 0)
    others = sum(each.high for name, each in idle.items() if name != table)
    high = idle[table].high if work.told_lwt != work.nodes else min(idle[table].high, number)
    return Range(min(max(0, number - others), high), high)


def _phases(counts: Counts) -> int:
    return sum(
        counts.get(metric, 0) for metric in (Metric.PREPARES, Metric.PROPOSALS, Metric.COMMITS)
    )
