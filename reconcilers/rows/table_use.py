"""Whether James uses a table at all, or an older James has left it behind. Pure.

James 3.7 stopped writing `attachmentMessageId`, whose old rows stay. Every attachment since then
would look like a missing row. So the newest truth rows of a sample decide:

===============================================  ==================================================
rows of the `NEWEST` newest truth rows           the table
===============================================  ==================================================
at least one is there                            is used: what is missing is a fault
none is there                                    is not used: nothing is compared or written there
the sample has no truth row                      is used, as far as is known
===============================================  ==================================================

One lost write in twenty makes a table look unused once in three million times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconcilers.declared.family import Family, Projection
from reconcilers.rows.memory import born_at
from reconcilers.words.model import Micros, Row, Slot

NEWEST = 5


def optional_table(family: Family) -> str | None:
    """The table of the family's listing, if some versions of James do not write it; else None."""
    return next((each.table for each in family.projections[:1] if each.optional), None)


def may_be_unused(family: Family) -> bool:
    """Whether some versions of James do not write the listing's table. One with `keeps` all do."""
    return optional_table(family) is not None and not family.listing.keeps


def newest_places(family: Family, projection: Projection, truths: Iterable[Row]) -> list[Slot]:
    """Where the rows of the newest of these truth rows are; `NEWEST` at most.

    The time in the id of a source counts, then the write time: James's migrations write old sources
    again.
    """

    def made_at(truth: Row) -> tuple[Micros, Micros]:
        return born_at(truth.cells[family.truth.source.name]) or 0, truth.newest or 0  # type: ignore[arg-type]

    belong = [truth for truth in truths if projection.belongs(truth)]
    belong.sort(key=made_at, reverse=True)
    return [family.truth.slot_of(truth) for truth in belong[:NEWEST]]


@dataclass(frozen=True, slots=True)
class ListingUse:
    """How many rows the newest truth rows of a sample need in a table; so many are ``there``."""

    table: str
    newest: int
    there: int

    @property
    def is_used(self) -> bool:
        """Whether the sample shows that James writes the table."""
        return self.there > 0

    @property
    def why_unused(self) -> str | None:
        """Why James does not write the table; None if it does, or if the sample shows nothing."""
        if self.is_used or not self.newest:
            return None
        told = f"{self.table} has none of the {self.newest} newest rows"
        return f"{told}: this James does not use it"
