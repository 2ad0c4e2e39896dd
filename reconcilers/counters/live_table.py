"""Which of two tables of one tally James writes. Pure.

After an upgrade, James may abandon `currentQuota` or continue to write it. In its compatibility
mode (`quota.compatibility.mode`), `CassandraMailboxQuotaLegacyModule` binds the older table even if
the newer one exists and was filled by its migration. A counter has no event, but each cell has the
time of its last increment, by a clock of James's. A sample of both tables decides at first:

============================================================  ====================================
rows under the keys that the tally reads                      kept
============================================================  ====================================
in one table only                                             that table
in both, the newest row of one an hour or more newer than     that table: James no longer writes
the newest row of the other                                   the other
in both, less than an hour apart; or in neither               none yet
============================================================  ====================================

Later samples are compared with the one before: the only table written since is kept; none if both
were. The hour ensures that a migration that has just run decides nothing.
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
"""The column of a sampled row with the newest write time (µs) of its counters."""
SampledRow = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TableUse:
    """A table, and when (µs) its newest row that the tally reads was written; None without rows."""

    tally: Tally
    newest: Micros | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The tally whose table is kept, None if unknown, and the reason in a phrase."""

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
    """Whether the tally reads a row with this key and these names."""
    key = str(row[tally.key])
    named = (each.row.items() for each in tally.cells.values())
    return tally.row_key(str(QuotaRoot.of(key))) == key and any(
        all(row[column] == value for column, value in where) for where in named
    )


def use_of(tally: Tally, rows: Iterable[SampledRow]) -> TableUse:
    """The use of a table, by a sample of its rows."""
    read = (row[WRITTEN] for row in rows if is_read(tally, row))
    return TableUse(tally, max((at for at in read if isinstance(at, int)), default=None))


def choose(uses: Sequence[TableUse]) -> Choice:
    """The table that James writes, by a first sample of several tables."""
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
    """The choice after another sample: the table written since, or ``last`` if none was."""
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
