"""Of two tables of one tally, the one that James writes. Pure.

An upgrade of James leaves `currentQuota` behind, or goes on writing it: in its compatibility mode
(`quota.compatibility.mode`) `CassandraMailboxQuotaLegacyModule` binds the older table, though the
newer one exists and its migration has filled it. A counter gives no event, but each cell has the
time of its last increment, by a clock of James's. So a sample of both tables tells, first

============================================================  ====================================
rows under the names that the tally reads                     kept
============================================================  ====================================
in one table only                                             that one
in both, the newest of one written an hour or more after the  that one: James no longer writes the
newest of the other                                           other
in both, the newest less than an hour apart; or in neither    none yet
============================================================  ====================================

and from then on the difference to the sample before: a table that alone was written since is kept;
none, if both were. The hour, so that a migration that has just run decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconcilers.declared.family import Family
from reconcilers.declared.tally import QuotaRoot, Tally
from reconcilers.words.iso import iso
from reconcilers.words.model import Micros

APART: Micros = 3_600_000_000
WRITTEN = "written"
"""In a sampled row: the newest write time (µs) of its counters."""
SampledRow = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TableUse:
    """A table of a tally, and when (µs) the newest of its sampled rows was written; None of none.

    Only rows that the tally reads count.
    """

    tally: Tally
    newest: Micros | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The tally whose table is kept, None if that is not known; and ``why``, in a phrase."""

    kept: Tally | None
    why: str


def shapes_of(family: Family) -> dict[str, tuple[Tally, ...]]:
    """By name, the tallies that a family has in more than one table."""
    names = Counter(each.name for each in family.tallies)
    return {
        name: tuple(each for each in family.tallies if each.name == name)
        for name, tables in names.items()
        if tables > 1
    }


def without(family: Family, unwanted: Iterable[Tally]) -> Family:
    """The family without these tallies."""
    others = tuple(unwanted)
    return replace(family, tallies=tuple(each for each in family.tallies if each not in others))


def is_read(tally: Tally, row: SampledRow) -> bool:
    """Whether a row is under a key and names that the tally reads."""
    key = str(row[tally.key])
    named = (each.row.items() for each in tally.cells.values())
    return tally.row_key(str(QuotaRoot.of(key))) == key and any(
        all(row[column] == value for column, value in where) for where in named
    )


def use_of(tally: Tally, rows: Iterable[SampledRow]) -> TableUse:
    """What a sample of a table's rows tells."""
    read = (row[WRITTEN] for row in rows if is_read(tally, row))
    return TableUse(tally, max((at for at in read if isinstance(at, int)), default=None))


def choose(uses: Sequence[TableUse]) -> Choice:
    """The table that James writes, of several that exist."""
    used = sorted(
        ((each.newest, each.tally) for each in uses if each.newest is not None),
        key=lambda each: each[0],
        reverse=True,
    )
    if not used:
        return Choice(None, f"neither {_named(uses)} has rows of it yet")
    (at, live), *others = used
    told = ", ".join(f"{tally.table} at {iso(when)}" for when, tally in used)
    if others and at < others[0][0] + APART:
        return Choice(None, f"James may write either: last written {told}, less than 1 h apart")
    return Choice(live, f"last written {told}" if others else f"only {live.table} has rows of it")


def choose_again(last: Choice, before: Sequence[TableUse], now: Sequence[TableUse]) -> Choice:
    """The same after another sample: the table that was written since, ``last`` if none was."""
    written = [
        each.tally
        for each, earlier in zip(now, before, strict=True)
        if each.newest is not None and (earlier.newest is None or each.newest > earlier.newest)
    ]
    if not written:
        return last
    if len(written) > 1:
        return Choice(None, f"both {' and '.join(each.table for each in written)} are written")
    return Choice(written[0], f"only {written[0].table} was written since the sample before")


def _named(uses: Iterable[TableUse]) -> str:
    return " nor ".join(each.tally.table for each in uses)
