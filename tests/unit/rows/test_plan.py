"""Step 6 as decisions: the table of `reconcilers.rows.plan`, line by line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.declared.writes import AddToSet, DeleteRow, RemoveFromSet, SetCells, Write
from reconcilers.rows.plan import plan
from reconcilers.rows.seen import Seen
from reconcilers.words.model import NEVER_WRITTEN, Difference, Kind, Report, Row, Value
from tests.builders.rows import (
    LONG_AGO,
    MESSAGE_ID,
    MOMENT,
    NOW,
    OTHER_ID,
    PROJECTION,
    SECOND,
    SLOT,
    partial,
    row,
    seen,
    truth,
)

SETTLED = MOMENT.horizon
EARLIER = LONG_AGO - 100 * SECOND
B = frozenset({"b"})


def planned(one: Seen, kind: Kind, *columns: str, attempt: int = 0) -> tuple[Write, ...]:
    answer = plan(PROJECTION, one, Difference(kind, columns), MOMENT, attempt)
    assert not isinstance(answer, Report)
    return answer


def corrected(actual: Row, wanted: Row, *columns: str, attempt: int = 0) -> tuple[Write, ...]:
    return planned(seen(actual, wanted), Kind.DIFFERING_CELLS, *columns, attempt=attempt)


def set_cells(at: int, **cells: object) -> SetCells:
    return SetCells(PROJECTION, SLOT, at, cells)  # type: ignore[arg-type]


# --- row missing ---------------------------------------------------------------------------------


def test_a_missing_row_gets_every_cell_of_the_truth_that_is_not_null() -> None:
    cells, elements = planned(seen(None, truth()), Kind.MISSING_ROW)
    assert isinstance(cells, SetCells)
    assert set(cells.cells) == set(PROJECTION.columns) - {"threadid", "save_date", "userflags"}
    assert cells.cells["messageid"] == MESSAGE_ID
    assert elements == AddToSet(PROJECTION, SLOT, LONG_AGO, "userflags", frozenset({"work"}))


def test_an_empty_set_needs_no_write() -> None:
    writes = planned(seen(None, truth(userflags=frozenset())), Kind.MISSING_ROW)
    assert [type(write) for write in writes] == [SetCells]


def test_a_missing_row_is_as_old_as_the_newest_cell_of_the_truth() -> None:
    made = truth(at=EARLIER)
    newest = Row(made.cells, {**made.written, "flagseen": LONG_AGO})
    assert {write.at for write in planned(seen(None, newest), Kind.MISSING_ROW)} == {LONG_AGO}


@pytest.mark.parametrize(
    ("wanted", "attempt"),
    [(truth(at=NOW), 0), (Row(truth().cells), 0), (truth(), 1), (truth(), 2)],
    ids=["a ballot ahead of clients' clocks", "no write time", "second attempt", "third attempt"],
)
def test_a_missing_row_is_never_newer_than_settled(wanted: Row, attempt: int) -> None:
    """The next attempts reach past older tombstones."""
    writes = planned(seen(None, wanted), Kind.MISSING_ROW, attempt=attempt)
    assert {write.at for write in writes} == {SETTLED}


def test_the_cells_of_a_missing_row_come_before_all_of_its_sets() -> None:
    labels = frozenset({"later"})
    two_sets = replace(
        PROJECTION,
        columns=(*PROJECTION.columns, "labels"),
        sets=PROJECTION.sets | {"labels"},
    )
    one = seen(None, truth(labels=labels))
    writes = plan(two_sets, one, Difference(Kind.MISSING_ROW), MOMENT, 0)
    assert not isinstance(writes, Report)
    cells, *sets = writes
    assert isinstance(cells, SetCells)
    assert sets == [
        AddToSet(two_sets, SLOT, LONG_AGO, "userflags", frozenset({"work"})),
        AddToSet(two_sets, SLOT, LONG_AGO, "labels", labels),
    ]


@pytest.mark.parametrize("first", ["what belongs here", "what does not"])
@pytest.mark.parametrize("actual", [None, row(headercontent="stale")], ids=["missing", "differs"])
def test_a_truth_row_that_does_not_belong_here_is_not_written(
    actual: Row | None, first: str
) -> None:
    only_unseen = replace(PROJECTION, belongs=lambda each: each.get("flagseen") is False)
    claims = [truth(flagseen=False), truth(flagseen=True, headercontent="of another")]
    one = seen(actual, *(claims if first == "what belongs here" else claims[::-1]))
    kind = Kind.MISSING_ROW if actual is None else Kind.DIFFERING_CELLS
    writes = plan(only_unseen, one, Difference(kind, ("headercontent",)), MOMENT, 0)
    assert not isinstance(writes, Report)
    cells = writes[0]
    assert isinstance(cells, SetCells)
    assert cells.cells["headercontent"] == "header-blob"


# --- cells differ --------------------------------------------------------------------------------


def test_only_the_differing_cells_are_written_just_after_what_was_seen() -> None:
    actual = row(flagseen=False, written={"flagseen": EARLIER})
    assert corrected(actual, truth(), "flagseen") == (set_cells(EARLIER + 1, flagseen=True),)


def test_the_newest_of_the_differing_cells_is_the_guard_not_that_of_the_row() -> None:
    actual = row(flagseen=False, modseq=1, written={"flagseen": EARLIER, "modseq": EARLIER + 5})
    writes = corrected(actual, truth(), "flagseen", "modseq")
    assert writes == (set_cells(EARLIER + 6, flagseen=True, modseq=12),)


def test_the_truths_write_time_never_matters_to_a_cell() -> None:
    actual = row(flagseen=False)
    old, new = truth(at=EARLIER), truth(at=SETTLED)
    assert corrected(actual, old, "flagseen") == corrected(actual, new, "flagseen")


@pytest.mark.parametrize(
    ("column", "wrong", "right", "attempt"),
    [
        ("flagseen", False, True, 2),
        ("threadid", OTHER_ID, None, 0),
        ("messageid", OTHER_ID, MESSAGE_ID, 0),
    ],
    ids=["in later attempts too", "the truth has none", "a wrong messageid"],
)
def test_a_cell_that_is_there_is_written_just_after_it(
    column: str, wrong: Value, right: Value, attempt: int
) -> None:
    writes = corrected(row({column: wrong}), truth(), column, attempt=attempt)
    assert writes == (set_cells(LONG_AGO + 1, **{column: right}),)


# --- a set differs -------------------------------------------------------------------------------


def test_a_set_is_corrected_by_element_and_with_its_guard() -> None:
    actual = row(userflags=frozenset({"stale"}), written={"modseq": EARLIER})
    at = EARLIER + 1
    assert corrected(actual, truth(), "userflags") == (
        set_cells(at, modseq=12),
        RemoveFromSet(PROJECTION, SLOT, at, "userflags", frozenset({"stale"})),
        AddToSet(PROJECTION, SLOT, at, "userflags", frozenset({"work"})),
    )


@pytest.mark.parametrize(
    ("there", "wanted", "change"),
    [
        ({"a", "b"}, {"a"}, RemoveFromSet(PROJECTION, SLOT, LONG_AGO + 1, "userflags", B)),
        ({"a"}, {"a", "b"}, AddToSet(PROJECTION, SLOT, LONG_AGO + 1, "userflags", B)),
    ],
    ids=["one too many", "one too few"],
)
def test_only_the_elements_that_differ_are_written(
    there: set[str], wanted: set[str], change: Write
) -> None:
    actual, right = row(userflags=frozenset(there)), truth(userflags=frozenset(wanted))
    assert corrected(actual, right, "userflags")[1:] == (change,)


def test_the_guard_is_written_once_where_it_differs_too() -> None:
    actual = row(userflags=frozenset(), modseq=1)
    writes = corrected(actual, truth(), "modseq", "userflags")
    assert writes == (
        set_cells(LONG_AGO + 1, modseq=12),
        AddToSet(PROJECTION, SLOT, LONG_AGO + 1, "userflags", frozenset({"work"})),
    )


def test_other_cells_keep_their_own_guard_beside_a_set() -> None:
    actual = row(userflags=frozenset(), flagseen=False, written={"flagseen": EARLIER})
    writes = corrected(actual, truth(), "flagseen", "userflags")
    assert writes[-1] == set_cells(EARLIER + 1, flagseen=True)
    assert {write.at for write in writes[:-1]} == {LONG_AGO + 1}


def test_a_set_without_its_guard_is_guarded_by_the_newest_cell_of_the_row() -> None:
    actual = row(userflags=frozenset(), modseq=None)
    assert {write.at for write in corrected(actual, truth(), "modseq", "userflags")} == {
        LONG_AGO + 1
    }


def test_the_next_attempt_at_a_set_reaches_past_older_tombstones() -> None:
    writes = corrected(row(userflags=frozenset()), truth(), "userflags", attempt=1)
    assert {write.at for write in writes} == {SETTLED}


# --- cells missing in a row that is there --------------------------------------------------------


def test_missing_cells_come_just_after_the_newest_cell_of_the_row() -> None:
    actual = partial(at=EARLIER, messageid=MESSAGE_ID, flagseen=True)
    writes = corrected(actual, truth(), "headercontent", "bodystartoctet")
    assert writes == (set_cells(EARLIER + 1, headercontent="header-blob", bodystartoctet=100),)


def test_the_next_attempt_at_missing_cells_reaches_past_older_tombstones() -> None:
    actual = partial(messageid=MESSAGE_ID)
    writes = corrected(actual, truth(), "headercontent", attempt=1)
    assert {write.at for write in writes} == {SETTLED}


def test_cells_that_differ_and_cells_that_are_missing_have_guards_of_their_own() -> None:
    actual = row(flagseen=False, headercontent=None, written={"flagseen": EARLIER})
    writes = corrected(actual, truth(), "flagseen", "headercontent")
    assert writes == (
        set_cells(EARLIER + 1, flagseen=True),
        set_cells(LONG_AGO + 1, headercontent="header-blob"),
    )


# --- a row that shows no cell with a write time ---------------------------------------------------


def test_a_row_that_shows_only_its_key_is_filled_as_if_it_were_missing() -> None:
    columns = ("messageid", "modseq", "headercontent")
    writes = corrected(partial(), truth(), *columns)
    assert writes == (
        set_cells(LONG_AGO, messageid=MESSAGE_ID, modseq=12, headercontent="header-blob"),
    )
    assert {write.at for write in corrected(partial(), truth(), *columns, attempt=1)} == {SETTLED}


def test_a_row_that_shows_only_a_set_loses_the_elements_it_should_not_have() -> None:
    actual = partial(userflags=frozenset({"stale"}))
    wanted = truth(userflags=frozenset())
    writes = corrected(actual, wanted, "modseq", "userflags", attempt=1)
    assert writes == (
        set_cells(SETTLED, modseq=12),
        RemoveFromSet(PROJECTION, SLOT, SETTLED, "userflags", frozenset({"stale"})),
    )


# --- row to remove -------------------------------------------------------------------------------


def test_a_row_is_removed_as_it_was_seen() -> None:
    actual = row(at=EARLIER, written={"flagseen": LONG_AGO})
    assert planned(seen(actual), Kind.EXTRA_ROW) == (DeleteRow(PROJECTION, SLOT, LONG_AGO),)


@pytest.mark.parametrize("elements", [frozenset[str](), frozenset({"work"})])
def test_a_row_without_any_write_time_cannot_be_guarded(elements: frozenset[str]) -> None:
    only_key = seen(partial(userflags=elements))
    answer = plan(PROJECTION, only_key, Difference(Kind.EXTRA_ROW), MOMENT, 0)
    assert isinstance(answer, Report)
    assert answer.kind is Kind.UNGUARDABLE


@pytest.mark.parametrize(("at", "guarded"), [(1, True), (0, False), (-1, False)])
@pytest.mark.parametrize("side", ["truth", "projection"])
def test_what_was_written_at_the_beginning_of_time_cannot_be_guarded(
    side: str, at: int, guarded: bool
) -> None:
    early = {"modseq": at}
    actual = row(flagseen=False, written=early if side == "projection" else None)
    wanted = Row(truth().cells, early) if side == "truth" else truth()
    answer = plan(
        PROJECTION,
        seen(actual, wanted),
        Difference(Kind.DIFFERING_CELLS, ("flagseen",)),
        MOMENT,
        0,
    )
    assert isinstance(answer, tuple) is guarded
    assert guarded or (isinstance(answer, Report) and answer.kind is Kind.UNGUARDABLE)


# --- never ---------------------------------------------------------------------------------------


WRITTEN = {Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW}


@pytest.mark.parametrize("kind", sorted(set(Kind) - WRITTEN))
def test_reported_classes_are_never_written(kind: Kind) -> None:
    answer = plan(PROJECTION, seen(row(), truth()), Difference(kind), MOMENT, 0)
    assert isinstance(answer, Report)
    assert answer.kind is kind


@pytest.mark.parametrize("attempt", [0, 1, 2])
@pytest.mark.parametrize("at", [EARLIER, SETTLED])
@pytest.mark.parametrize(
    "cells", [{"flagseen": False}, {"headercontent": None}, {"userflags": frozenset({"stale"})}]
)
def test_promise_2_nothing_is_newer_than_settled_but_seen_plus_one(
    cells: dict[str, object], at: int, attempt: int
) -> None:
    actual = row(cells, at=at)  # type: ignore[arg-type]
    writes = corrected(actual, truth(), *cells, attempt=attempt)
    assert writes
    assert all(write.at <= max(SETTLED, at + 1) for write in writes)


def test_promise_1_every_write_names_the_projection() -> None:
    writes = [
        *planned(seen(None, truth()), Kind.MISSING_ROW),
        *planned(seen(row()), Kind.EXTRA_ROW),
        *corrected(row(userflags=frozenset({"stale"})), truth(), "userflags"),
    ]
    assert {write.projection.table for write in writes} == {"messageidtable"}
    assert not {write.projection.table for write in writes} & NEVER_WRITTEN
