"""The decisions of step 6: from a confirmed difference to guarded writes. Pure.

The guard is the write timestamp (promise 2): a repair replaces only what was seen. C is when the
confirmation began, D the delay. C − D is older than any write that may still arrive.

=========================  =================================  =================================
case                       write                              timestamp
=========================  =================================  =================================
cell differs               those cells                        highest seen of those cells + 1
set differs                its elements, and modseq           modseq's + 1,
                                                              next attempt C − D
set differs, no modseq     its elements                       C − D
cell missing in a row      the cells                          highest seen of the row + 1,
                                                              next attempt C − D
row missing                all non-null columns, by UPDATE    min(truth's highest, C − D),
                                                              next attempt C − D
row without a write time   what it lacks                      as of a missing row
row to remove              the row                            highest seen of the row;
                                                              none: reported
row of sets alone          the row, removed                   C − D: it has no write time
key-only index             the row, added or deleted          C − D: it has no write time
gathered elements          those that are missing             C − D
=========================  =================================  =================================

No timestamp is newer than C − D except "seen + 1", and what was seen is older than C − D.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconcilers.declared.conversion import as_copied
from reconcilers.declared.family import Projection
from reconcilers.declared.writes import AddRow, AddToSet, DeleteRow, RemoveFromSet, SetCells, Write
from reconcilers.rows.compare import elements, its_truth, not_collected
from reconcilers.rows.confirm import Moment
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Difference, Kind, Micros, Report, Row, Slot, Value

Plan = tuple[Write, ...]


def plan(
    projection: Projection, seen: Seen, difference: Difference, moment: Moment, attempt: int
) -> Plan | Report:
    """The writes that repair this difference, or a report if it cannot be guarded.

    ``attempt`` counts from 0. Later attempts are newer than tombstones, whose time cannot be read.
    """
    if (why := _not_ours(projection, seen, difference)) is not None:
        return why
    if projection.is_index:
        return (_index_write(projection, seen, difference, moment),)
    match difference.kind:
        case Kind.MISSING_ROW:
            return _add_row(projection, seen.slot, _wanted(projection, seen), moment, attempt)
        case Kind.DIFFERING_CELLS:
            return _correct(projection, seen, difference.columns, moment, attempt)
        case Kind.EXTRA_ROW:
            return _remove(projection, seen, moment)
        case _:
            return Report(difference.kind, "reported classes are never written")


def _not_ours(projection: Projection, seen: Seen, difference: Difference) -> Report | None:
    """Why no write of the stream repairs this; None if one may."""
    if projection.only_by:
        return Report(difference.kind, f"only `{projection.only_by}` repairs it")
    if any(at <= 0 for row in (*seen.truths, seen.actual) if row for at in row.written.values()):
        return Report(Kind.UNGUARDABLE, "a cell was written at the beginning of time, or before")
    return None


def _wanted(projection: Projection, seen: Seen) -> Row:
    """The truth row that belongs at this slot, as it is copied."""
    return as_copied(projection.conversions, its_truth(projection, seen))


def _index_write(
    projection: Projection, seen: Seen, difference: Difference, moment: Moment
) -> Write:
    """The write to an index row, at C − D: what a user wrote within the last D stays."""
    slot, at = seen.slot, moment.horizon
    if projection.collects is not None:
        missing = not_collected(projection.collects, seen.truths, seen.actual)
        return AddToSet(projection, slot, at, projection.collects, missing)
    if difference.kind is Kind.MISSING_ROW:
        return AddRow(projection, slot, at)
    return DeleteRow(projection, slot, at)


def _add_row(projection: Projection, slot: Slot, truth: Row, moment: Moment, attempt: int) -> Plan:
    at = _time_guard(truth, moment, attempt)
    return _fill(projection, slot, truth, projection.columns, at)


def _time_guard(truth: Row, moment: Moment, attempt: int) -> Micros:
    if attempt == 0 and truth.newest is not None:
        return min(truth.newest, moment.horizon)
    return moment.horizon


def _fill(
    projection: Projection, slot: Slot, truth: Row, columns: Iterable[str], at: Micros
) -> Plan:
    """Writes of the truth's non-null cells and set elements, for cells that are missing."""
    cells: dict[str, Value] = {}
    writes: list[Write] = []
    for column in columns:
        value = truth.get(column)
        if isinstance(value, frozenset):
            if value:
                writes.append(AddToSet(projection, slot, at, column, value))
        elif value is not None:
            cells[column] = value
    if cells:
        writes.insert(0, SetCells(projection, slot, at, cells))
    return tuple(writes)


def _correct(
    projection: Projection,
    seen: Seen,
    columns: Sequence[str],
    moment: Moment,
    attempt: int,
) -> Plan:
    truth, actual = _wanted(projection, seen), seen.actual
    assert actual is not None
    if actual.newest is None:  # no write time can be read
        behind_tombstones = _time_guard(truth, moment, attempt)
    else:
        behind_tombstones = actual.newest + 1 if attempt == 0 else moment.horizon
    sets = [column for column in columns if column in projection.sets]
    single = [column for column in columns if column not in projection.sets]
    writes: list[Write] = []
    guard = projection.write_time_of_sets
    if sets and guard is not None:
        single = [column for column in single if column != guard]
        seen_at = actual.written.get(guard)
        at = behind_tombstones if seen_at is None or attempt > 0 else seen_at + 1
        writes.append(SetCells(projection, seen.slot, at, {guard: truth.get(guard)}))
        writes.extend(_correct_sets(projection, seen, sets, at))
    elif sets:
        writes.extend(_correct_sets(projection, seen, sets, moment.horizon))
    there = [column for column in single if column in actual.written]
    if there:
        at = max(actual.written[column] for column in there) + 1
        cells = {column: truth.get(column) for column in there}
        writes.append(SetCells(projection, seen.slot, at, cells))
    absent = [column for column in single if column not in actual.written]
    if absent:
        writes.extend(_fill(projection, seen.slot, truth, absent, behind_tombstones))
    return tuple(writes)


def _correct_sets(
    projection: Projection, seen: Seen, columns: Sequence[str], at: Micros
) -> Iterable[Write]:
    """Writes of single elements: an overwrite would remove what users have added."""
    truth, actual = _wanted(projection, seen), seen.actual
    assert actual is not None
    for column in columns:
        wanted, there = elements(truth, column), elements(actual, column)
        if there - wanted:
            yield RemoveFromSet(projection, seen.slot, at, column, there - wanted)
        if wanted - there:
            yield AddToSet(projection, seen.slot, at, column, wanted - there)


def _remove(projection: Projection, seen: Seen, moment: Moment) -> Plan | Report:
    assert seen.actual is not None
    if projection.sets.issuperset(projection.columns):  # none that Cassandra 4 could read
        return (DeleteRow(projection, seen.slot, moment.horizon),)
    if seen.actual.newest is None:
        return Report(
            Kind.UNGUARDABLE,
            "the row has no cell with a write time: a delete could not be limited to what was seen",
        )
    return (DeleteRow(projection, seen.slot, seen.actual.newest),)
