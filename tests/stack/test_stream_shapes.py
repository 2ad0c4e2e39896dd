"""Changes of every shape wake the stream, in the truth and in the projection.

First all messages stand right on both sides and have been examined; then each is changed on one
side only, by one statement, so that nothing but this statement's event can lead to it.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

pytestmark = pytest.mark.stack

Change = Callable[[Scene, Place], None]

TRUTH_ROW = "WHERE messageid = %s AND mailboxid = %s AND uid = %s"
PROJECTED_ROW = "WHERE mailboxid = %s AND uid = %s"
EXPIRES_AFTER = 60
"""Seconds: it is examined before."""


# --- the truth changes, the projection's statement is lost


def one_cell_is_updated(scene: Scene, place: Place) -> None:
    scene.execute(f"UPDATE $truth SET flagseen = true {TRUTH_ROW}", *place.ids.values())


def flags_are_updated_by_lightweight_transaction(scene: Scene, place: Place) -> None:
    scene.execute(
        f"UPDATE $truth SET flagseen = true, modseq = 8 {TRUTH_ROW} IF modseq = 7",
        *place.ids.values(),
    )


def a_set_element_is_added(scene: Scene, place: Place) -> None:
    scene.execute(
        f"UPDATE $truth SET userflags = userflags + {{'added'}} {TRUTH_ROW}", *place.ids.values()
    )


def a_set_element_is_removed(scene: Scene, place: Place) -> None:
    scene.execute(
        f"UPDATE $truth SET userflags = userflags - {{'kept'}} {TRUTH_ROW}", *place.ids.values()
    )


def a_whole_set_is_replaced(scene: Scene, place: Place) -> None:
    scene.execute(f"UPDATE $truth SET userflags = {{'new'}} {TRUTH_ROW}", *place.ids.values())


def one_cell_is_deleted(scene: Scene, place: Place) -> None:
    scene.execute(f"DELETE threadid FROM $truth {TRUTH_ROW}", *place.ids.values())


TRUTH_UPDATES: tuple[Change, ...] = (
    one_cell_is_updated,
    flags_are_updated_by_lightweight_transaction,
    a_set_element_is_added,
    a_set_element_is_removed,
    a_whole_set_is_replaced,
    one_cell_is_deleted,
)


def a_row_is_deleted(scene: Scene, place: Place) -> None:
    scene.execute(f"DELETE FROM $truth {TRUTH_ROW}", *place.ids.values())


def a_message_is_deleted_from_a_mailbox(scene: Scene, place: Place) -> None:
    """James's delete: a range, without the UID."""
    scene.delete_truth(place)


def a_partition_is_deleted(scene: Scene, place: Place) -> None:
    scene.execute("DELETE FROM $truth WHERE messageid = %s", place.messageid)


def a_partition_of_two_uids_is_deleted(scene: Scene, place: Place) -> None:
    """Which UID a delete meant is no question where all are gone."""
    a_partition_is_deleted(scene, place)


def twin(place: Place) -> Place:
    """The same message under another UID of its mailbox."""
    return replace(place, uid=place.uid + 1)


TRUTH_DELETES: tuple[Change, ...] = (
    a_row_is_deleted,
    a_message_is_deleted_from_a_mailbox,
    a_partition_is_deleted,
    a_partition_of_two_uids_is_deleted,
)


# --- new rows of the truth, the projection's statement is lost


def a_plain_insert(scene: Scene, place: Place) -> None:
    _insert(scene, place, "")


def a_lightweight_insert(scene: Scene, place: Place) -> None:
    _insert(scene, place, "IF NOT EXISTS")


def _insert(scene: Scene, place: Place, condition: str) -> None:
    names = ("messageid", "mailboxid", "uid", *cells())
    marks = ", ".join(["%s"] * len(names))
    scene.execute(
        f"INSERT INTO $truth ({', '.join(names)}) VALUES ({marks}) {condition}",
        *place.ids.values(),
        *cells().values(),
    )


def an_update_that_makes_the_row(scene: Scene, place: Place) -> None:
    scene.write_truth(place, cells())


TRUTH_INSERTS: tuple[Change, ...] = (
    a_plain_insert,
    a_lightweight_insert,
    an_update_that_makes_the_row,
)


# --- the projection changes, the truth does not


def projected_row_is_inserted(scene: Scene, place: Place) -> None:
    scene.execute(
        "INSERT INTO $projection (mailboxid, uid, flagseen) VALUES (%s, %s, true)", *place.row
    )


def projected_cell_is_updated(scene: Scene, place: Place) -> None:
    scene.execute(f"UPDATE $projection SET flagseen = true {PROJECTED_ROW}", *place.row)


def projected_set_gains_an_element(scene: Scene, place: Place) -> None:
    scene.execute(
        f"UPDATE $projection SET userflags = userflags + {{'stale'}} {PROJECTED_ROW}", *place.row
    )


def projected_set_loses_an_element(scene: Scene, place: Place) -> None:
    scene.execute(
        f"UPDATE $projection SET userflags = userflags - {{'kept'}} {PROJECTED_ROW}", *place.row
    )


def projected_set_is_replaced(scene: Scene, place: Place) -> None:
    scene.execute(f"UPDATE $projection SET userflags = {{'stale'}} {PROJECTED_ROW}", *place.row)


def projected_cell_is_deleted(scene: Scene, place: Place) -> None:
    scene.execute(f"DELETE headercontent FROM $projection {PROJECTED_ROW}", *place.row)


def projected_messageid_is_deleted(scene: Scene, place: Place) -> None:
    scene.execute(f"DELETE messageid FROM $projection {PROJECTED_ROW}", *place.row)


def projected_row_is_deleted(scene: Scene, place: Place) -> None:
    """The event names no message: only what was remembered leads to the truth."""
    scene.delete_projection(place)


def projected_range_is_deleted(scene: Scene, place: Place) -> None:
    scene.execute("DELETE FROM $projection WHERE mailboxid = %s AND uid >= %s", *place.row)


def projected_mailbox_is_deleted(scene: Scene, place: Place) -> None:
    scene.execute("DELETE FROM $projection WHERE mailboxid = %s", place.mailboxid)


PROJECTION_CHANGES: tuple[Change, ...] = (
    projected_row_is_inserted,
    projected_cell_is_updated,
    projected_set_gains_an_element,
    projected_set_loses_an_element,
    projected_set_is_replaced,
    projected_cell_is_deleted,
    projected_messageid_is_deleted,
    projected_row_is_deleted,
    projected_range_is_deleted,
    projected_mailbox_is_deleted,
)


def late_partial_update_after_a_delete(scene: Scene, place: Place) -> None:
    """Both sides are gone; then a flag change of another mail server arrives."""
    scene.delete_truth(place)
    scene.delete_projection(place)
    scene.write_projection(place, {"flagseen": True, "modseq": 8})


def a_row_expires(scene: Scene, place: Place) -> None:
    """The truth's cells have a TTL; at their expiry there is no event."""
    values = cells(userflags=set())
    scene.write_projection(place, {"messageid": place.messageid, **values})
    del values["userflags"]
    assignments = ", ".join(f"{name} = %s" for name in values)
    scene.execute(
        f"UPDATE $truth USING TTL {EXPIRES_AFTER} SET {assignments} {TRUTH_ROW}",
        *values.values(),
        *place.ids.values(),
    )


# --- the tests


@pytest.fixture(scope="module")
def places(scene: Scene) -> dict[Change, Place]:
    """One message for each change, all examined before any is changed."""
    changed = (*TRUTH_UPDATES, *TRUTH_DELETES, *PROJECTION_CHANGES)
    standing = (*changed, late_partial_update_after_a_delete)
    found = {change: Place() for change in standing}
    expiring = Place()
    a_row_expires(scene, expiring)
    twice = found[a_partition_of_two_uids_is_deleted]
    for place in (*found.values(), twin(twice)):
        scene.write_both(place, cells())
    scene.await_remembered([expiring, *found.values(), twin(twice)])
    scene.await_all_examined()
    found |= {change: Place() for change in TRUTH_INSERTS}
    for change, place in found.items():
        change(scene, place)
    return {**found, a_row_expires: expiring}


def named(change: Change) -> str:
    return getattr(change, "__name__", "")


@pytest.mark.parametrize("change", TRUTH_UPDATES, ids=named)
def test_an_update_of_the_truth_reaches_the_projection(
    scene: Scene, places: dict[Change, Place], change: Change
) -> None:
    place = places[change]
    scene.await_verified(place.row)
    assert scene.kinds(place.row) == {"differing_cells"}
    assert scene.agrees(place)
    assert scene.projected_at(place.row) != {**place.ids, **cells()}


@pytest.mark.parametrize("change", TRUTH_INSERTS, ids=named)
def test_a_new_row_of_the_truth_reaches_the_projection(
    scene: Scene, places: dict[Change, Place], change: Change
) -> None:
    place = places[change]
    scene.await_verified(place.row)
    assert scene.kinds(place.row) == {"missing_row"}
    assert scene.projected_at(place.row) == {**place.ids, **cells()}


@pytest.mark.parametrize("change", TRUTH_DELETES, ids=named)
def test_a_delete_of_the_truth_reaches_the_projection(
    scene: Scene, places: dict[Change, Place], change: Change
) -> None:
    place = places[change]
    scene.await_verified(place.row)
    assert scene.kinds(place.row) == {"extra_row"}
    assert scene.lacks(place.row)


@pytest.mark.parametrize("change", PROJECTION_CHANGES, ids=named)
def test_a_change_of_the_projection_alone_is_undone(
    scene: Scene, places: dict[Change, Place], change: Change
) -> None:
    place = places[change]
    scene.await_verified(place.row)
    assert scene.projected_at(place.row) == {**place.ids, **cells()}


def test_a_delete_of_a_whole_message_takes_each_of_its_rows(
    scene: Scene, places: dict[Change, Place]
) -> None:
    other = twin(places[a_partition_of_two_uids_is_deleted])
    scene.await_verified(other.row)
    assert scene.kinds(other.row) == {"extra_row"}
    assert scene.lacks(other.row)


def test_a_late_partial_update_after_a_delete_leaves_nothing(
    scene: Scene, places: dict[Change, Place]
) -> None:
    place = places[late_partial_update_after_a_delete]
    scene.await_verified(place.row)
    assert scene.kinds(place.row) == {"extra_row"}
    assert scene.lacks(place.row)


def test_a_row_of_the_truth_that_expires_leaves_the_projection(
    scene: Scene, places: dict[Change, Place]
) -> None:
    place = places[a_row_expires]
    until("it has expired", lambda: scene.truth_at(place) is None)
    scene.await_verified(place.row)
    assert scene.kinds(place.row) == {"extra_row"}
    assert scene.lacks(place.row)
