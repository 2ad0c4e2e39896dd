"""``reconcile findings --members``: the rows that one finding of a sweep stands for."""

from __future__ import annotations

from collections.abc import Iterator

from checkpoints.codec import Json, finding_to_json
from checkpoints.journal import Journal
from checkpoints.lost_rows import LostRowsStore
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding
from reconcilers.sweep.lost_rows import LostRow, covered, reason_at
from reconcilers.words.errors import Misconfigured
from reconcilers.words.key import named
from streaming.commands.arguments.finding_filter import FindingFilter, slots_named


def members(
    journal: Journal, store: LostRowsStore, key: str, wanted: FindingFilter
) -> Iterator[Json]:
    """A line for each row that the filter takes. Raises `Misconfigured` without such a finding."""
    for family, slot in slots_named(FAMILIES, key):
        if not family.projections or reason_at(family, slot) is None:
            continue
        found = journal.recall(family, family.listing.name, [slot]).get(slot)
        if found is not None:
            return _lines(family, found, store, wanted)
    raise Misconfigured(f"--members {key}: no open finding there stands for rows of the past")


def _lines(
    family: Family, group: Finding, store: LostRowsStore, wanted: FindingFilter
) -> Iterator[Json]:
    reason = reason_at(family, group.slot)
    for row in store.all(family):
        line = _as_json(family, group, row)
        if row.reason is reason and wanted.has(line):
            yield line


def _as_json(family: Family, group: Finding, row: LostRow) -> Json:
    taken = covered(group, row, row.reason)
    return {
        "at": row.counted_at,
        "family": family.name,
        "projection": family.listing.name,
        **named(family.key, row.slot.key),
        "kind": str(row.reason),
        "state": "left",
        "attempts": 0,
        "accepted": finding_to_json(group, family)["accepted"] if taken else [],
        "found_at": row.counted_at,
        "sentence": f"left with others, {row.reason}",
    }
