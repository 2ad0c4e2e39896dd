"""Rows that the truth has lost without a delete: of many at once one finding tells. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

from reconcilers.family import Family
from reconcilers.finding import Finding, State
from reconcilers.memory import born_at
from reconcilers.model import SECOND, Kind, Micros


def truth_lost_rows(
    family: Family, findings: Iterable[Finding], limit: int, now: Micros
) -> Finding | None:
    """The finding of the whole truth, None where no more rows are absent than ``limit``.

    It stands where no row of the listing can, and parks nothing. ``now`` is µs.
    """
    absent = [each for each in findings if each.kind is Kind.ABSENT_WITHOUT_DELETE]
    if len(absent) <= limit:
        return None
    groups = {each.slot.group for each in absent}
    groups_of, sources = family.group.plural, family.truth.source.plural
    told = (
        f"{family.truth.table} has lost {len(absent)} rows of {len(groups)} {groups_of}"
        f" without a delete{_made(sources, absent)}: was it restored from an older copy?"
        " Nothing of it is removed unless a person accepts it"
    )
    return Finding(
        family=family.name,
        projection=family.listing.name,
        slot=family.whole_group(None),
        source=None,
        kind=Kind.TRUTH_LOST_ROWS,
        state=State.REPORTED,
        sentence=told,
        found_at=now,
    )


def _made(sources: str, absent: Iterable[Finding]) -> str:
    """When the sources were made: that tells how old the copy is."""
    times = [at for each in absent for at in _births(each)]
    if not times:
        return ""
    first, last = (datetime.fromtimestamp(at // SECOND, UTC) for at in (min(times), max(times)))
    return f" ({sources} made from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC)"


def _births(finding: Finding) -> Iterable[Micros]:
    for text in finding.sources:
        try:
            at = born_at(UUID(text))
        except ValueError:
            continue
        if at is not None:
            yield at
