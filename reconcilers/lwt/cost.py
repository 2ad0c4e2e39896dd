"""What lightweight transactions cost, from the work of some nodes in an interval.

Cassandra keeps what was promised and proposed in a table of its own, `system.paxos`. Each phase of
each lightweight transaction, and of each serial read, works on it: that is what they cost beside
the tables themselves. By table it counts the phases only, on the replicas. Which of them were
serial reads, and which were conditions that were not met, it counts by node, for all tables
together. So these two are told by table as a range, which is exact where no other table can have
had them.
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
"""What the work on `system.paxos` is compared in with that on all tables, replicas' work."""


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """A number that is known to lie between two, both included."""

    low: int
    high: int

    @property
    def text(self) -> str:
        """One number where it is known."""
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,}–{self.high:,}"


@dataclass(frozen=True, slots=True)
class Share:
    """What of a kind of work was done on `system.paxos`, and what on all tables with it."""

    paxos: int
    everything: int

    @property
    def part(self) -> float | None:
        """From 0 to 1; None where nothing was done."""
        return self.paxos / self.everything if self.everything else None


@dataclass(frozen=True, slots=True)
class TableWork:
    """One table in the interval. Operations are the clients', not their copies."""

    table: Table
    copies: int
    counts: Counts
    gauges: Gauges
    serial_reads: Range
    refused: Range
    phases_share: float

    @property
    def changed(self) -> int:
        """Lightweight transactions that were applied."""
        return self._once(Metric.COMMITS)

    @property
    def unchanged(self) -> int:
        """Rounds that changed nothing: serial reads, conditions not met, rounds that were lost."""
        return max(0, self._once(Metric.PREPARES) - self.changed)

    @property
    def ordinary_reads(self) -> int:
        """By key or range; a lightweight transaction's own read of the row is not among them."""
        asked = self.counts.get(Metric.ASKED_READS, 0) + self.counts.get(Metric.ASKED_SCANS, 0)
        return max(0, asked - self._once(Metric.PROPOSALS))

    @property
    def ordinary_writes(self) -> int:
        """As clients asked for them."""
        return self.counts.get(Metric.ASKED_WRITES, 0)

    def mean_ms(self, times: Metric, micros: Metric) -> float | None:
        """The mean time of a phase on a replica, milliseconds; None where there was none."""
        return mean_ms(self.counts, times, micros)

    def _once(self, metric: Metric) -> int:
        return round(self.counts.get(metric, 0) / self.copies)


@dataclass(frozen=True, slots=True)
class Cost:
    """The whole report. ``tables`` are those with any work, the most phases first.

    ``confirmed``: suspects that our own stream read again; None where it did not tell.
    """

    seconds: float
    work: Work
    tables: tuple[TableWork, ...]
    shares: Mapping[str, Share]
    confirmed: int | None = None

    @property
    def known_by_table(self) -> bool:
        """Whether all nodes told of lightweight transactions."""
        return self.work.told_lwt == self.work.nodes

    @property
    def disk(self) -> int:
        """Of `system.paxos` on all nodes, MiB, rounded up by each."""
        return self.work.gauges.get(PAXOS, Gauges()).disk


def mean_ms(counts: Counts, times: Metric, micros: Metric) -> float | None:
    """The mean of what was timed, milliseconds; None where nothing was."""
    number = counts.get(times, 0)
    return counts.get(micros, 0) / number / 1000 if number else None


def cost_of(work: Work, copies: Mapping[str, int], seconds: float) -> Cost:
    """The report of an interval; ``copies`` is how many copies a row has, by keyspace."""
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
    """How much of the load lightweight transactions cause, and by which tables; one sentence."""
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
    """With a comma between them, and *and* before the last."""
    first, last = parts[:-1], parts[-1:]
    return " and ".join([", ".join(first), *last] if first else last)


def _share(work: Work, metrics: tuple[Metric, ...]) -> Share:
    def done(counts: Counts) -> int:
        return sum(counts.get(metric, 0) for metric in metrics)

    return Share(
        done(work.tables.get(PAXOS, {})), sum(done(counts) for counts in work.tables.values())
    )


def _range(own: float, everybodys: float, number: int) -> Range:
    """How many of a number that is known of all tables are one table's.

    It has at most as many as it had rounds without a change, and all that others cannot have had.
    """
    high = min(round(own), number)
    return Range(min(max(0, number - round(everybodys - own)), high), high)


def _phase(counts: Counts, metric: Metric) -> int:
    return counts.get(metric, 0)


def _phases(counts: Counts) -> int:
    return sum(
        counts.get(metric, 0) for metric in (Metric.PREPARES, Metric.PROPOSALS, Metric.COMMITS)
    )
