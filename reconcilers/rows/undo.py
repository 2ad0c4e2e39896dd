"""Undo of a repair: if the row is as the repair left it, its before-image is restored. Pure.

A finding may have been tried several times. Its tries are undone together: what each of them wrote
is restored to the before-image of the first. Tries before a write of somebody else stay.

The guard is the write timestamp, as for every repair. Each cell is restored at our write's time +
1, so anything written since is newer and stays. Each cell must be what the repair left, with its
write time; otherwise the undo is refused, and a person is shown what has changed.

====================================  ===========================================================
the repair                            what undoes it, one microsecond later
====================================  ===========================================================
added a row                           the row is deleted
corrected cells, elements of a set    the cells and elements as they were
removed a row                         all its cells and elements as they were
added or removed an index row         the index row is removed, or added
added gathered elements               those that were not there are removed
====================================  ===========================================================

An index row has no readable write time, so only its presence is checked before. Whether the undo
holds is read afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeGuard

from reconcilers.declared.writes import AddRow, AddToSet, DeleteRow, RemoveFromSet, SetCells, Write
from reconcilers.limits.hold import Hold
from reconcilers.rows.finding import Finding, State
from reconcilers.words.iso import iso
from reconcilers.words.model import Micros, Row, Value

UNDO = "undo"
"""The batch of an undo, which separates it from a repair in the log."""
NO_REPAIR = "the log has no repair of it: it was none of ours, or is older than the log"
AS_BEFORE = "it is as it was before the repair: undone already, or never written"
NOTHING: frozenset[str] = frozenset()
NO_ROW = Row({})


def last_repair(history: Iterable[Finding]) -> Finding | str:
    """The newest repair in a key's log (newest line first), or why there is none to undo."""
    newer: Finding | None = None
    for each in history:
        if each.batch == UNDO:
            if each.state is State.UNDONE:
                return f"it was undone already: {each.sentence}"
            continue
        if each.writes and not _was_not_sent(each, newer):
            return each
        newer = each
    return NO_REPAIR


def _was_not_sent(intended: Finding, newer: Finding | None) -> bool:
    """Whether an intent was held at the last moment: its finding then has the writes before it."""
    return (
        intended.state is State.INTENDED
        and newer is not None
        and newer.state is State.HELD
        and newer.writes != intended.writes
        and newer.found_at == intended.found_at
    )


def tries_of(repair: Finding, history: Iterable[Finding]) -> tuple[Finding, ...]:
    """The repair and earlier tries of its finding, oldest first, by the key's log (newest first).

    A try after which somebody has written is none of them, nor is any before it. A finding that was
    retried or reported in between has lost its writes, and was therefore not superseded.
    """
    tries = [repair]
    newer: Finding | None = None
    for each in history:
        if each.found_at != repair.found_at or each.batch == UNDO:
            continue
        intended = each.state is State.INTENDED and not _was_not_sent(each, newer)
        if intended and (each.writes, each.before) != (tries[-1].writes, tries[-1].before):
            if each.kind != tries[-1].kind or _changed(each, tries[-1].before) is not None:
                break
            tries.append(each)
        newer = each
    return tuple(reversed(tries))


def together(tries: Sequence[Finding]) -> Finding:
    """The tries of one finding (oldest first) as one: all writes, and the first before-image."""
    first, writes = tries[0], tuple(write for each in tries for write in each.writes)
    return replace(tries[-1], before=first.before, writes=writes)


def undo(tries: Sequence[Finding], now: Row | None) -> tuple[Write, ...] | str:
    """The writes that undo all tries of a finding (oldest first), or why that is refused.

    ``now`` is the row as it is.
    """
    last, repair = tries[-1], together(tries)
    if not last.writes:
        return NO_REPAIR
    if stands(repair, now):
        return AS_BEFORE
    changed = _changed(last, now)
    return changed if changed is not None else tuple(_inverse(repair.before, _row_writes(repair)))


def _row_writes(repair: Finding) -> tuple[Write, ...]:
    return tuple(each for each in repair.writes if isinstance(each, Write))


def stands(repair: Finding, now: Row | None) -> bool:
    """Whether the row is as it was before the repair, whatever its write times."""
    before, gathered = repair.before, [each for each in _row_writes(repair) if _gathers(each)]
    if gathered:
        return not any(_added(each, before) & _elements(now, each.column) for each in gathered)
    return _same_cells(before, now)


def _gathers(write: Write) -> TypeGuard[AddToSet]:
    return isinstance(write, AddToSet) and write.projection.collects is not None


def told(repair: Finding, hold: Hold, what: str, now: Micros) -> Finding:
    """A line of the log at ``now`` (µs): who undoes the repair, why, and the result."""
    sentence = f"undo by {hold.who}: {hold.reason}; {what}; the repair was: {repair.sentence}"
    return replace(repair, sentence=sentence, batch=UNDO, tried_at=now, next_look=None)


def _changed(repair: Finding, now: Row | None) -> str | None:
    """What has changed since the repair, None if the row is as the repair left it."""
    writes = _row_writes(repair)
    first = writes[0]
    if _gathers(first):
        return None
    before, key = repair.before, first.projection.key
    if before is now or (before and now and not _difference((before,), now, key)):
        return None  # the repair has had no effect
    left = _left_by(before, writes)
    if left is None:
        return None if now is None else "the row is there again: somebody has written it since"
    if now is None:
        return "the row is not there any more: somebody has deleted it since"
    if first.projection.is_index:
        return None
    return _difference((left, before or NO_ROW), now, key)


def _left_by(before: Row | None, writes: Iterable[Write]) -> Row | None:
    """The row as a repair leaves it, None if it removes it."""
    cells: dict[str, Value] = {} if before is None else dict(before.cells)
    written = {} if before is None else dict(before.written)
    for write in writes:
        match write:
            case DeleteRow():
                return None
            case SetCells():
                cells |= write.cells
                written |= dict.fromkeys(write.cells, write.at)
            case AddToSet(column=column, elements=elements):
                cells[column] = _set(cells.get(column)) | elements
            case RemoveFromSet(column=column, elements=elements):
                cells[column] = _set(cells.get(column)) - elements
    times = {column: at for column, at in written.items() if cells.get(column) is not None}
    return Row(cells, times)


def _difference(either: tuple[Row, ...], now: Row, key: tuple[str, ...]) -> str | None:
    """The cells of ``now`` that none of these rows has, with their write times; None without."""
    columns = sorted(
        column
        for column in {name for row in (*either, now) for name in row.cells} - set(key)
        if not any(_same_cell(row, now, column) for row in either)
    )
    if not columns:
        return None
    newest = max((now.written.get(column, 0) for column in columns), default=0)
    told = f", at {iso(newest)}" if newest > 0 else ""
    return f"{', '.join(columns)} changed since the repair{told}: that is newer, and stays"


def _same_cell(one: Row, other: Row, column: str) -> bool:
    same = _same(one.get(column), other.get(column))
    return same and one.written.get(column) == other.written.get(column)


def _same_cells(one: Row | None, other: Row | None) -> bool:
    if one is None or other is None:
        return one is other
    columns = one.cells.keys() | other.cells.keys()
    return all(_same(one.get(column), other.get(column)) for column in columns)


def _same(one: Value, other: Value) -> bool:
    """Whether two cells are equal; an empty set equals null."""
    return (one or None) == (other or None) if _is_set(one) or _is_set(other) else one == other


def _is_set(value: Value) -> bool:
    return isinstance(value, frozenset)


def _set(value: Value) -> frozenset[str]:
    return value if isinstance(value, frozenset) else NOTHING


def _elements(row: Row | None, column: str) -> frozenset[str]:
    return NOTHING if row is None else _set(row.get(column))


def _inverse(before: Row | None, writes: tuple[Write, ...]) -> Iterable[Write]:
    """The inverse writes, each one microsecond after ours."""
    first, latest = writes[0], max(each.at for each in writes) + 1
    if isinstance(first, AddRow) or (before is None and not first.projection.is_index):
        yield DeleteRow(first.projection, first.slot, latest)
        return
    for write in writes:
        if isinstance(write, DeleteRow):
            yield from _restored(write, before)
        else:
            yield from _as_before(write, before)


def _restored(removed: DeleteRow, before: Row | None) -> Iterable[Write]:
    projection, slot, at = removed.projection, removed.slot, removed.at + 1
    if projection.is_index or before is None:
        yield AddRow(projection, slot, at)
        return
    cells = {
        column: value
        for column, value in before.cells.items()
        if value is not None and not _is_set(value) and column not in projection.key
    }
    if cells:
        yield SetCells(projection, slot, at, cells)
    for column, value in before.cells.items():
        if isinstance(value, frozenset) and value:
            yield AddToSet(projection, slot, at, column, value)


def _as_before(write: Write, before: Row | None) -> Iterable[Write]:
    projection, slot, at = write.projection, write.slot, write.at + 1
    match write:
        case SetCells(cells=cells):
            old = {column: None if before is None else before.get(column) for column in cells}
            yield SetCells(projection, slot, at, old)
        case AddToSet(column=column):
            added = _added(write, before)
            if added:
                yield RemoveFromSet(projection, slot, at, column, added)
        case RemoveFromSet(column=column, elements=elements):
            removed = elements & _elements(before, column)
            if removed:
                yield AddToSet(projection, slot, at, column, removed)


def _added(write: AddToSet, before: Row | None) -> frozenset[str]:
    """The elements of the write that were not there before."""
    return write.elements - _elements(before, write.column)
