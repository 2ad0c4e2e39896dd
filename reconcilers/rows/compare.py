"""Step 4: expected and actual row of one slot. Pure, and the only comparison in the product."""

from __future__ import annotations

from collections.abc import Iterable

from reconcilers.declared.conversion import as_in_truth
from reconcilers.declared.family import Family, Projection
from reconcilers.rows.seen import Seen, is_incomplete
from reconcilers.words.model import Difference, Kind, Row


def compare(family: Family, projection: Projection, seen: Seen) -> Difference | None:
    """The difference at this slot, None if both sides agree.

    Modseq is compared like any cell and proves nothing about the others. Write times are ignored:
    different clocks stamp truth and projection.
    """
    if projection.is_index:
        return _compare_index(family, projection, seen)
    if any(is_incomplete(family, truth) for truth in seen.truths):
        alike = _is_listed_alike(projection, seen) and is_countable(family, seen.truths[0])
        kind = Kind.INCOMPLETE_IN_BOTH if alike else Kind.INCOMPLETE_TRUTH_ROW
        return Difference(kind, lacking_columns(family, seen.truths))
    wanted = [truth for truth in seen.truths if projection.belongs(truth)]
    if len(wanted) > 1 and not projection.keeps:
        return Difference(Kind.DUPLICATE_UID)
    if seen.actual is None:
        return Difference(Kind.MISSING_ROW) if wanted else None
    return _in_cells(projection, seen, seen.actual) if wanted else Difference(Kind.EXTRA_ROW)


def _in_cells(projection: Projection, seen: Seen, actual: Row) -> Difference | None:
    if lacking := tuple(each for each in projection.keeps if actual.get(each) is None):
        return Difference(Kind.MISSING_CONTENT, lacking)
    columns = differing_columns(projection, its_truth(projection, seen), actual)
    return Difference(Kind.DIFFERING_CELLS, columns) if columns else None


def its_truth(projection: Projection, seen: Seen) -> Row:
    """The truth row that the row here repeats. One that sources share repeats that which it names.

    If it names none of them, the first counts.
    """
    wanted = [truth for truth in seen.truths if projection.belongs(truth)]
    named = None if seen.actual is None else seen.actual.get(str(projection.identity))
    same = (each for each in wanted if each.get(str(projection.identity)) == named)
    return next(same, wanted[0])


def _is_listed_alike(projection: Projection, seen: Seen) -> bool:
    if len(seen.truths) != 1 or seen.actual is None or not projection.belongs(seen.truths[0]):
        return False
    return not differing_columns(projection, seen.truths[0], seen.actual)


def _compare_index(family: Family, projection: Projection, seen: Seen) -> Difference | None:
    """The difference at an index row; None until truth and listing agree and rows are complete."""
    if bool(seen.truths) != seen.listed or any(is_incomplete(family, each) for each in seen.truths):
        return None
    wanted = [truth for truth in seen.truths if projection.belongs(truth)]
    if projection.collects is not None:
        missing = not_collected(projection.collects, wanted, seen.actual)
        return Difference(Kind.DIFFERING_CELLS, (projection.collects,)) if missing else None
    if bool(wanted) == (seen.actual is not None):
        return None
    return Difference(Kind.MISSING_ROW if wanted else Kind.EXTRA_ROW)


def not_collected(column: str, truths: Iterable[Row], actual: Row | None) -> frozenset[str]:
    """The elements of these truth rows that the row of their mailbox lacks."""
    there = elements(actual, column) if actual is not None else frozenset()
    return frozenset[str]().union(*(elements(truth, column) for truth in truths)) - there


def elements(row: Row, column: str) -> frozenset[str]:
    """The elements of a set column; empty if it is null."""
    value = row.get(column)
    return value if isinstance(value, frozenset) else frozenset()


def differing_columns(projection: Projection, truth: Row, actual: Row) -> tuple[str, ...]:
    """The copied columns whose cells differ, in schema order; compared in the truth's form."""
    expected, found = truth.cells.get, as_in_truth(projection.conversions, actual).cells.get
    return tuple([column for column in projection.columns if expected(column) != found(column)])


def lacking_columns(family: Family, truths: Iterable[Row]) -> tuple[str, ...]:
    """The required columns that any of these truth rows lacks, in the family's order."""
    rows = list(truths)
    return tuple(
        column for column in family.truth.required if any(row.get(column) is None for row in rows)
    )


def is_countable(family: Family, truth: Row) -> bool:
    """Whether counters can count a truth row, which needs fewer cells than James's readers need."""
    if not is_incomplete(family, truth):
        return True
    return None not in [truth.cells.get(column) for column in family.truth.summed]
