"""Rows that the truth has lost without a delete: of many at once one finding tells. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from reconcilers.family import Family
from reconcilers.finding import Finding, State
from reconcilers.memory import born_at
from reconcilers.model import SECOND, Kind, Micros, Slot


class AbsentRow(Protocol):
    """A row that the truth has lost without a delete, as an open finding tells of it."""

    @property
    def slot(self) -> Slot:
        """Where it is in the listing."""

    @property
    def uuids(self) -> tuple[UUID, ...]:
        """The ids of what it is about."""


def truth_lost_rows(
    family: Family, absent: Collection[AbsentRow], limit: int, now: Micros
) -> Finding | None:
    """The finding of the whole truth, None where no more rows are absent than ``limit``.

    It stands where no row of the listing can, and parks nothing. ``now`` is µs.
    """
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


def _made(sources: str, absent: Iterable[AbsentRow]) -> str:
    """When the sources were made: that tells how old the copy is."""
    born = (born_at(each) for row in absent for each in row.uuids)
    times = [at for at in born if at is not None]
    if not times:
        return ""
    first, last = (datetime.fromtimestamp(at // SECOND, UTC) for at in (min(times), max(times)))
    return f" ({sources} made from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC)"
