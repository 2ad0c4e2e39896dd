"""Which of a tally's two tables James writes, from some rows of both and their write times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from reconcilers.counters.live_table import WRITTEN, Choice, TableUse, choose, use_of
from reconcilers.declared.tally import Tally
from reconcilers.words.errors import Refused

SAMPLE = 1_000
"""How many rows of a table are read."""


def sample_of(session: Session, keyspace: str, tally: Tally) -> list[dict[str, Any]]:
    """The columns that are no counters, and the newest write time (µs), of `SAMPLE` rows.

    Raises `reconcilers.words.errors.Retryable`, or `Refused` if the table may not be read.
    """
    counters = sorted({each.column for each in tally.cells.values()})
    names = sorted(tally.columns - set(counters))
    times = [f"writetime({each})" for each in counters]
    query = f"SELECT {', '.join(names + times)} FROM {keyspace}.{tally.table} LIMIT {SAMPLE}"
    with translated(f"reading {keyspace}.{tally.table}"):
        return [_sampled(row, names) for row in session.execute(query)]


def _sampled(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    times = [value for name, value in row.items() if name not in names and value is not None]
    return {**{name: row[name] for name in names}, WRITTEN: max(times, default=None)}


def uses_of(session: Session, keyspace: str, shapes: Sequence[Tally]) -> list[TableUse]:
    """When each table was last written, from a sample. Raises as `sample_of` does."""
    return [use_of(each, sample_of(session, keyspace, each)) for each in shapes]


def choice_of(session: Session, keyspace: str, shapes: Sequence[Tally]) -> Choice:
    """Which of these tables James writes; none if one is refused. Raises `Retryable`."""
    try:
        return choose(uses_of(session, keyspace, shapes))
    except Refused as refused:
        return Choice(None, f"{refused}")
