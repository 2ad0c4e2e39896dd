"""What the running stream must repair: rows and cells of `messageIdTable` that are not the truth's.

All rows are broken first; each test then waits for its own.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.stack.scenes import FLAGS, Cells, Place, Scene, cells
from tests.stack.streams import until

pytestmark = pytest.mark.stack

ELSEWHEN = datetime(2001, 1, 1, tzinfo=UTC)
OTHER = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


@dataclass(frozen=True)
class Cell:
    """A cell that differs: what the truth has, and what the projection has (None: null)."""

    column: str
    truth: Any
    projected: Any

    def __str__(self) -> str:
        return f"{self.column}: {_short(self.projected)} must be {_short(self.truth)}"


def _short(value: Any) -> str:
    if isinstance(value, set):
        return "{" + ",".join(sorted(value)) + "}"
    return str(value).replace("-", "")[:8]


def differing_cells() -> Iterator[Cell]:
    """Every column, both directions: wrong, lacking, and (where the truth may be null) too many."""
    sound = cells()
    for name in FLAGS:
        yield Cell(f"flag{name}", truth=True, projected=False)
        yield Cell(f"flag{name}", truth=False, projected=True)  # stale: must be cleared
        yield Cell(f"flag{name}", truth=True, projected=None)
        yield Cell(f"flag{name}", truth=None, projected=True)
    wrong: Cells = {
        "modseq": 999_999,
        "threadid": OTHER,
        "internaldate": ELSEWHEN,
        "save_date": ELSEWHEN,
        "bodystartoctet": 1,
        "fullcontentoctets": 1,
        "headercontent": "wrong",
    }
    for column, value in wrong.items():
        yield Cell(column, truth=sound[column], projected=value)
        yield Cell(column, truth=sound[column], projected=None)
    for column in ("threadid", "save_date"):
        yield Cell(column, truth=None, projected=wrong[column])
    yield Cell("userflags", truth={"kept"}, projected={"kept", "stale"})
    yield Cell("userflags", truth=set(), projected={"stale"})
    yield Cell("userflags", truth={"kept", "missing"}, projected={"kept"})
    yield Cell("userflags", truth={"missing"}, projected=set())
    yield Cell("userflags", truth={"missing", "kept"}, projected={"stale", "kept"})


CELLS = list(differing_cells())


@dataclass
class Broken:
    """Places by what is wrong with them, and the write times of their cells before any repair."""

    cells: dict[str, tuple[Place, dict[str, int]]]
    places: dict[str, Place]


@pytest.fixture(scope="module")
def broken(scene: Scene) -> Broken:
    """Every broken row of this module, before the first wait."""
    return Broken(
        {str(cell): _differing(scene, cell) for cell in CELLS},
        {plant.__name__: plant(scene) for plant in PLANTED},
    )


def _differing(scene: Scene, cell: Cell) -> tuple[Place, dict[str, int]]:
    place = Place()
    scene.write_truth(place, cells(**{cell.column: cell.truth}))
    wrong = {"messageid": place.messageid, **cells(**{cell.column: cell.projected})}
    scene.write_projection(place, wrong)
    return place, scene.write_times(place.row)


# --- cells


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_differing_cell_becomes_the_truths_whatever_the_modseq(
    scene: Scene, broken: Broken, cell: Cell
) -> None:
    place, before = broken.cells[str(cell)]
    until("both sides agree", lambda: scene.agrees(place))
    scene.await_verified(place.row)
    assert scene.kinds(place.row) == {"differing_cells"}
    after = scene.write_times(place.row)
    written = {cell.column} if cell.column != "userflags" else {"modseq"}  # the set's guard
    untouched = before.keys() - written
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}


# --- rows


def missing_row(scene: Scene) -> Place:
    place = Place()
    full = cells(**{f"flag{name}": True for name in FLAGS}, userflags={"one", "two"})
    scene.write_truth(place, full)
    return place


def missing_row_with_null_columns(scene: Scene) -> Place:
    place = Place()
    scene.write_truth(place, cells(threadid=None, save_date=None, flaguser=None, userflags=set()))
    return place


def orphan_of_an_unknown_message(scene: Scene) -> Place:
    """As old as memory: a younger one waits longer, until its own event cannot come any more."""
    place = Place()
    scene.write_projection(place, {"messageid": place.messageid, **cells()}, scene.began)
    return place


def orphan_of_a_deleted_message(scene: Scene) -> Place:
    place = Place()
    scene.leave_behind(place)
    return place


def wrong_uid(scene: Scene) -> Place:
    place = Place()
    scene.write_truth(place, cells())
    wrong = {"messageid": place.messageid, **cells()}
    scene.write_projection(replace(place, uid=2), wrong, scene.began)
    return place


def wrong_messageid(scene: Scene) -> Place:
    place = Place()
    scene.write_truth(place, cells())
    scene.write_projection(place, {"messageid": OTHER, **cells()})
    return place


def partial_row_of_a_deleted_message(scene: Scene) -> Place:
    place = Place()
    scene.leave_behind(place)
    scene.delete_projection(place)
    scene.write_projection(place, {"flagseen": True, "modseq": 8})
    return place


def partial_row_of_a_living_message(scene: Scene) -> Place:
    place = Place()
    scene.write_truth(place, cells(flagseen=True, modseq=8))
    scene.write_projection(place, {"flagseen": True, "modseq": 8})
    return place


PLANTED = (
    missing_row,
    missing_row_with_null_columns,
    orphan_of_an_unknown_message,
    orphan_of_a_deleted_message,
    wrong_uid,
    wrong_messageid,
    partial_row_of_a_deleted_message,
    partial_row_of_a_living_message,
)


def test_a_missing_row_is_added_with_every_column_and_set_element(
    scene: Scene, broken: Broken
) -> None:
    place = broken.places["missing_row"]
    scene.await_verified(place.row)
    assert scene.kinds(place.row) == {"missing_row"}
    row = scene.projected_at(place.row)
    assert row == scene.truth_at(place)
    assert row is not None
    assert row["userflags"] == {"one", "two"}
    assert None not in row.values()


def test_null_columns_of_the_truth_stay_null_in_a_row_that_is_added(
    scene: Scene, broken: Broken
) -> None:
    place = broken.places["missing_row_with_null_columns"]
    scene.await_verified(place.row)
    row = scene.projected_at(place.row)
    assert row == scene.truth_at(place)
    assert row is not None
    assert [name for name, value in row.items() if value is None] == [
        "flaguser",
        "save_date",
        "threadid",
    ]


def test_an_orphan_of_a_deleted_message_is_removed(scene: Scene, broken: Broken) -> None:
    row = broken.places["orphan_of_a_deleted_message"].row
    scene.await_verified(row)
    assert scene.kinds(row) == {"extra_row"}
    assert scene.lacks(row)


def test_an_orphan_of_a_message_that_was_never_received_is_left(
    scene: Scene, broken: Broken
) -> None:
    row = broken.places["orphan_of_an_unknown_message"].row
    scene.reported(row, "ambiguous_range_delete")
    assert not scene.lacks(row)


def test_a_row_with_a_wrong_uid_is_removed_and_the_right_one_added(
    scene: Scene, broken: Broken
) -> None:
    right = broken.places["wrong_uid"]
    wrong = replace(right, uid=2)
    scene.await_verified(right.row)
    scene.await_verified(wrong.row)
    assert scene.agrees(right)
    assert scene.lacks(wrong.row)
    assert (scene.kinds(right.row), scene.kinds(wrong.row)) == ({"missing_row"}, {"extra_row"})


def test_a_wrong_messageid_is_corrected(scene: Scene, broken: Broken) -> None:
    place = broken.places["wrong_messageid"]
    scene.await_verified(place.row)
    assert scene.agrees(place)
    assert scene.kinds(place.row) == {"differing_cells"}


def test_a_partial_row_of_a_deleted_message_is_removed(scene: Scene, broken: Broken) -> None:
    place = broken.places["partial_row_of_a_deleted_message"]
    scene.await_verified(place.row)
    assert scene.lacks(place.row)


def test_a_partial_row_of_a_living_message_is_completed(scene: Scene, broken: Broken) -> None:
    place = broken.places["partial_row_of_a_living_message"]
    scene.await_verified(place.row)
    assert scene.agrees(place)
