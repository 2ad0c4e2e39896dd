"""The report of ``reconcile lwt-report`` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from checkpoints.codec import Json
from reconcilers.declared.families import FAMILIES
from reconcilers.lwt.cost import PAXOS, Cost, TableWork, mean_ms, sentence
from reconcilers.lwt.placement import Range
from reconcilers.lwt.statements import Metric, Table
from reconcilers.words.model import NEVER_WRITTEN

TRUTHS = NEVER_WRITTEN | {family.truth.table for family in FAMILIES}
"""The tables that are truth to James, its allocators of numbers among them."""
HEADINGS = (
    "table",
    "LWT",
    "applied",
    "serial reads",
    "refused",
    "prepare ms",
    "propose ms",
    "commit ms",
    "share",
    "reads",
    "p99 ms",
    "writes",
    "p99 ms",
)
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Shown:
    """James's keyspace with its tables, and our own keyspace."""

    keyspace: str
    tables: frozenset[str]
    own: str
    paxos_variant: str

    def name(self, table: Table) -> str:
        """The table's name, with its keyspace unless it is James's."""
        return table[1] if table[0] == self.keyspace else ".".join(table)

    def has(self, each: TableWork) -> bool:
        """Whether it is shown: a table of James's, or one with lightweight transactions."""
        return each.table[0] == self.keyspace or bool(each.counts.get(Metric.PREPARES))


def as_json(cost: Cost, shown: Shown) -> Json:
    """One object: the replicas' counts, and what follows for clients."""
    return {
        "keyspace": shown.keyspace,
        "seconds": round(cost.seconds, 3),
        "nodes": sorted(cost.work.nodes),
        "nodes_told_lwt": sorted(cost.work.told_lwt),
        "paxos_variant": shown.paxos_variant,
        "cluster": {metric.value: number for metric, number in cost.work.whole.items()},
        "tables": {
            ".".join(each.table): _table_json(each) for each in cost.tables if shown.has(each)
        },
        "paxos": {
            name: {"paxos": share.paxos, "all": share.everything, "share": share.part}
            for name, share in cost.shares.items()
        },
        "paxos_disk_mib": cost.disk,
        "truths": truths(cost, shown),
        "our_suspects_confirmed": cost.confirmed,
        "not_known": cost.work.gaps,
        "sentence": sentence(cost, shown.keyspace),
    }


def as_text(cost: Cost, shown: Shown) -> Iterator[str]:
    """The lines of the report, the tables in columns."""
    yield from _head(cost, shown)
    rows = [HEADINGS, *_rows(cost, shown)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()
    yield from _foot(cost, shown)


def truths(cost: Cost, shown: Shown) -> dict[str, str]:
    """For each truth table, when it had lightweight transactions: now, earlier, or never."""
    now = {each.table for each in cost.tables if each.counts.get(Metric.PREPARES)}

    def used(table: Table) -> str:
        if table in now:
            return "in this interval"
        if table in cost.work.ever:
            return "earlier, since a node's start"
        return "none" if cost.known_by_table else "not known"

    return {name: used((shown.keyspace, name)) for name in sorted(TRUTHS & shown.tables)}


def _head(cost: Cost, shown: Shown) -> Iterator[str]:
    whole, nodes = cost.work.whole, len(cost.work.nodes)
    yield (
        f"{shown.keyspace}: {cost.seconds:.0f} s, {nodes} node{'s' if nodes > 1 else ''},"
        f" paxos {shown.paxos_variant}"
    )
    if not whole:
        return
    reads = mean_ms(whole, Metric.CAS_READS, Metric.CAS_READ_MICROS)
    writes = mean_ms(whole, Metric.CAS_WRITES, Metric.CAS_WRITE_MICROS)
    yield (
        f"all tables: {whole[Metric.CAS_READS]:,} serial reads (mean {_ms(reads)} ms,"
        f" {whole[Metric.CONTENDED_READS]:,} contended),"
        f" {whole[Metric.CAS_WRITES]:,} lightweight transactions (mean {_ms(writes)} ms,"
        f" {whole[Metric.REFUSED]:,} refused, {whole[Metric.CONTENDED_WRITES]:,} contended),"
        f" {whole[Metric.UNFINISHED]:,} finished for others, {whole[Metric.TIMEOUTS]:,} timed out"
    )
    yield f"Cassandra's processor time: {whole[Metric.CPU_NANOS] / 1e9:.1f} s"


def _rows(cost: Cost, shown: Shown) -> Iterator[tuple[str, ...]]:
    for each in filter(shown.has, cost.tables):
        known = bool(cost.work.told_lwt)
        table = each.table[1] if each.table[0] == shown.keyspace else ""
        mark = " (truth)" if table in TRUTHS else ""
        lwt = (
            each.rounds.text,
            each.changed.text,
            each.serial_reads.text,
            each.refused.text,
            _ms(each.mean_ms(Metric.PREPARES, Metric.PREPARE_MICROS)),
            _ms(each.mean_ms(Metric.PROPOSALS, Metric.PROPOSAL_MICROS)),
            _ms(each.mean_ms(Metric.COMMITS, Metric.COMMIT_MICROS)),
            f"{each.phases_share:.0%}",
        )
        yield (
            f"{shown.name(each.table)}{mark}",
            *(lwt if known else ("?",) * len(lwt)),
            each.ordinary_reads.text,
            _ms(each.gauges.read_p99),
            f"{each.ordinary_writes:,}",
            _ms(each.gauges.write_p99),
        )


def _foot(cost: Cost, shown: Shown) -> Iterator[str]:
    name = ".".join(PAXOS)
    for kind, share in cost.shares.items():
        part = "-" if share.part is None else f"{share.part:.0%}"
        if kind.endswith("bytes"):
            paxos, everything = share.paxos / MIB, share.everything / MIB
            yield f"{name} {kind}: {paxos:,.1f} of {everything:,.1f} MiB, {part}"
        else:
            yield f"{name} {kind}: {share.paxos:,} of {share.everything:,}, {part}"
    yield f"{name} on disk: {cost.disk:,} MiB at most"
    grouped: dict[str, list[str]] = {}
    for table, used in truths(cost, shown).items():
        grouped.setdefault(used, []).append(table)
    for used, tables in sorted(grouped.items()):
        yield f"truth tables with lightweight transactions {used}: {', '.join(tables)}"
    ours = [each for each in cost.tables if each.table[0] == shown.own]
    added = sum(each.phases_share for each in ours)
    yield f"our own keyspace {shown.own}: {added:.0%} of all phases"
    if cost.confirmed is None:
        yield "our own stream: no metrics at metrics.host and metrics.port, so it is not known"
    else:
        yield f"our own stream: {cost.confirmed:,} suspects confirmed, mostly one serial read each"
    yield from (f"NOTE: {gap}" for gap in cost.work.gaps)
    yield sentence(cost, shown.keyspace)


def _ms(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


def _ends(each: Range) -> list[int]:
    return [each.low, each.high]


def _table_json(each: TableWork) -> dict[str, Any]:
    return {
        **{metric.value: number for metric, number in each.counts.items()},
        "applied": _ends(each.changed),
        "unchanged": _ends(each.unchanged),
        "serial_reads": _ends(each.serial_reads),
        "refused_between": _ends(each.refused),
        "ordinary_reads": _ends(each.ordinary_reads),
        "ordinary_writes": each.ordinary_writes,
        "read_p99_ms": each.gauges.read_p99,
        "write_p99_ms": each.gauges.write_p99,
        "phases_share": each.phases_share,
    }
