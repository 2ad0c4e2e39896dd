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

from collections.abc import Collection, Iterable

from reconcilers.declared.family import Family, Projection
from reconcilers.words.model import Row, Slot

NEWEST = 5


def newest_places(family: Family, projection: Projection, truths: Iterable[Row]) -> list[Slot]:
    """Where the newest of these truth rows, by write time, have their rows; `NEWEST` at most."""
    belong = [truth for truth in truths if projection.belongs(truth)]
    belong.sort(key=lambda truth: truth.newest or 0, reverse=True)
    return [family.truth.slot_of(truth) for truth in belong[:NEWEST]]


def why_unused(projection: Projection, newest: Collection[Slot], there: int) -> str | None:
    """Why James does not use the table, None if it does; ``there`` of the ``newest`` have rows."""
    if there or not newest:
        return None
    return (
        f"{projection.table} has none of the {len(newest)} newest rows: this James does not use it"
    )
