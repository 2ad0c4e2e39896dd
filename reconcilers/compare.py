"""Step 4: expected against actual, for one slot. Pure, and the only comparison in the product."""

from __future__ import annotations

from reconcilers.family import Family, Projection
from reconcilers.model import Difference, Kind, Row, Seen


def compare(family: Family, projection: Projection, seen: Seen) -> Difference | None:
    """What is wrong at this slot, None when both sides agree.

    Modseq is compared like any cell and proves nothing about the others. Write times are not looked
    at: truth and projection are stamped by different clocks.
    """
    if any(is_incomplete(family, truth) for truth in seen.truths):
        return Difference(Kind.INCOMPLETE_TRUTH_ROW)
    wanted = [truth for truth in seen.truths if projection.belongs(truth)]
    if len(wanted) > 1:
        return Difference(Kind.DUPLICATE_UID)
    if not wanted:
        return None if seen.actual is None else Difference(Kind.EXTRA_ROW)
    if seen.actual is None:
        return Difference(Kind.MISSING_ROW)
    columns = differing_columns(projection, wanted[0], seen.actual)
    return Difference(Kind.DIFFERING_CELLS, columns) if columns else None


def differing_columns(projection: Projection, truth: Row, actual: Row) -> tuple[str, ...]:
    """The copied columns whose cells are not equal, in schema order."""
    expected, found = truth.cells.get, actual.cells.get
    return tuple([column for column in projection.columns if expected(column) != found(column)])


def is_incomplete(family: Family, truth: Row) -> bool:
    """Whether a column is null without which James cannot read this truth row."""
    return None in [truth.cells.get(column) for column in family.required]
