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


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """A number that is known to be between two numbers, both included."""

    low: int
    high: int

    @property
    def text(self) -> str:
        """The range in words; one number if it is known."""
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,}–{self.high:,}"


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a kind of work was done on `system.paxos`, and how much on all tables."""

    paxos: int
    everything: int

    @property
    def part(self) -> float | None:
        """From 0 to 1; None if no work was done."""
        return self.paxos / self.everything if self.everything else None


@dataclass(frozen=True, slots=True)
class TableWork:
    """The work on one table in the interval. Operations are counted once, not for each copy."""

    table: Table
    copies: int
    counts: Counts
    gauges: Gauges
    serial_reads: Range
    refused: Range
    phases_share: float

    @property
    def changed(self) -> int:
        """The number of lightweight transactions that were applied."""
        return self._once(Metric.COMMITS)

    @property
    def unchanged(self) -> int:
        """The rounds that changed nothing: serial reads, unmet conditions, lost rounds."""
        return max(0, self._once(Metric.PREPARES) - self.changed)

    @property
    def ordinary_reads(self) -> int:
        """Reads by key or range, without those that a lightweight transaction makes of its row."""
        asked = self.counts.get(Metric.ASKED_READS, 0) + self.counts.get(Metric.ASKED_SCANS, 0)
        return max(0, asked - self._once(Metric.PROPOSALS))

    @property
    def ordinary_writes(self) -> int:
        """The writes that clients requested, without lightweight transactions."""
        return self.counts.get(Metric.ASKED_WRITES, 0)

    def mean_ms(self, times: Metric, micros: Metric) -> float | None:
        """The mean time of a phase on a replica, in ms; None if there was none."""
        return mean_ms(self.counts, times, micros)

    def _once(self, metric: Metric) -> int:
        return round(self.counts.get(metric, 0) / self.copies)


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


def cost_of(work: Work, copies: Mapping[str, int], seconds: float) -> Cost:
    """The report of an interval; ``copies`` is the replication factor by keyspace."""
    idle = {
        table: max(0, _phase(counts, Metric.PREPARES) - _phase(counts, Metric.COMMITS))
        / copies.get(table[0], 1)
        for table, counts in work.tables.items()
    }
    all_idle = sum(idle.values())
    phases = sum(_phases(counts) for counts in work.tables.values())
    tables = (
        TableWork(
            table=table,
            copies=copies.get(table[0], 1),
            counts=counts,
            gauges=work.gauges.get(table, Gauges()),
            serial_reads=_range(idle[table], all_idle, _phase(work.whole, Metric.CAS_READS)),
            refused=_range(idle[table], all_idle, _phase(work.whole, Metric.REFUSED)),
            phases_share=_phases(counts) / phases if phases else 0.0,
        )
        for table, counts in work.tables.items()
        if any(counts.values())
    )
    return Cost(
        seconds=seconds,
        work=work,
        tables=tuple(sorted(tables, key=lambda each: (-_phases(each.counts), each.table))),
        shares={name: _share(work, metrics) for name, metrics in SHARED.items()},
    )


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


def _range(own: float, everybodys: float, number: int) -> Range:
    """The range of one table's part in a number known for all: other tables had the rest."""
    high = min(round(own), number)
    return Range(min(max(0, number - round(everybodys - own)), high), high)


def _phase(counts: Counts, metric: Metric) -> int:
    return counts.get(metric, 0)


def _phases(counts: Counts) -> int:
    return sum(
        counts.get(metric, 0) for metric in (Metric.PREPARES, Metric.PROPOSALS, Metric.COMMITS)
    )
