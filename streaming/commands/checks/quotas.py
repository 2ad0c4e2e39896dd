"""Whether James's rows of quotas are under the names that are read here: else no error is seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconcilers.errors import Refused
from reconcilers.family import tallies_in
from reconcilers.tally import QuotaRoot, Tally
from streaming.commands.checks.check import CassandraContext, Check, fine, problem
from streaming.commands.checks.permissions import ROLES

SAMPLE = 1_000
"""Rows of a table that are read."""


def quotas_readable(context: CassandraContext) -> Iterator[Check]:
    """Of a table of quotas that has rows, some are read."""
    for family in context.families:
        for tally in tallies_in(family, context.schema):
            there = tally.columns <= context.schema[tally.table].keys()
            if tally.per_quota_root and there:
                yield from _readable(context, tally)


def _readable(context: CassandraContext, tally: Tally) -> Iterator[Check]:
    names = sorted(tally.columns)
    try:
        rows = context.cluster.sample(context.keyspace, tally.table, names, SAMPLE)
    except Refused as refused:
        yield problem(str(refused), f"grant SELECT: {ROLES}")
        return
    if any(is_read(tally, row) for row in rows):
        yield fine(f"{tally.table} has rows under the names that {tally.name} reads")
    elif rows:
        seen = ", ".join(f"{name} {rows[0][name]}" for name in names)
        yield problem(
            f"{tally.table} has rows, but none of {len(rows)} is under the names that {tally.name}"
            f" reads ({seen}): no quota is corrected",
            "is it James's keyspace? a newer James may need a newer version",
        )


def is_read(tally: Tally, row: Mapping[str, object]) -> bool:
    """Whether a row is under a key and names that the tally reads."""
    key = str(row[tally.key])
    named = (each.row.items() for each in tally.cells.values())
    return tally.row_key(str(QuotaRoot.of(key))) == key and any(
        all(row[column] == value for column, value in where) for where in named
    )
