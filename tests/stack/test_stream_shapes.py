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

Change = Callable[[Scene, Place], object]

TRUTH_ROW = "WHERE messageid = %s AND mailboxid = %s AND uid = %s"
PROJECTED_ROW = "WHERE mailboxid = %s AND uid = %s"
EXPIRES_AFTER = 60
"""Seconds: it is examined before."""


def to_truth(cql: str, condition: str = "") -> Change:
    """A statement to the row of the truth."""
    return lambda scene, place: scene.execute(f"{cql} {TRUTH_ROW} {condition}", *place.ids.values())


def to_projection(cql: str, where: str = PROJECTED_ROW) -> Change:
    """A statement with the key of the row of the projection."""
    return lambda scene, place: scene.execute(f"{cql} {where}", *place.row)


# --- the truth changes, the projection's statement is lost


TRUTH_UPDATES: dict[str, Change] = {
    "one_cell_is_updated": to_truth("UPDATE $truth SET flagseen = true"),
    "flags_are_updated_by_lightweight_transaction": to_truth(
        "UPDATE $truth SET flagseen = true, modseq = 8", "IF modseq = 7"
    ),
    "a_set_element_is_added": to_truth("UPDATE $truth SET userflags = userflags + {'added'}"),
    "a_set_element_is_removed": to_truth("UPDATE $truth SET userflags = userflags - {'kept'}"),
    "a_whole_set_is_replaced": to_truth("UPDATE $truth SET userflags = {'new'}"),
    "one_cell_is_deleted": to_truth("DELETE threadid FROM $truth"),
}


def a_partition_is_deleted(scene: Scene, place: Place) -> None:
    scene.execute("DELETE FROM $truth WHERE messageid = %s", place.messageid)


OF_TWO_UIDS, THE_OTHER_UID = "a_partition_of_two_uids_is_deleted", "so_is_the_other_uid"
"""Which UID a delete meant is no question where all are gone."""


def twin(place: Place) -> Place:
    """The same message under another UID of its mailbox."""
    return replace(place, uid=place.uid + 1)


TRUTH_DELETES: dict[str, Change] = {
    "a_row_is_deleted": to_truth("DELETE FROM $truth"),
    # James's delete: a range, without the UID
    "a_message_is_deleted_from_a_mailbox": Scene.delete_truth,
    "a_partition_is_deleted": a_partition_is_deleted,
    OF_TWO_UIDS: a_partition_is_deleted,
}


# --- new rows of the truth, the projection's statement is lost


def inserted(condition: str) -> Change:
    names = ("messageid", "mailboxid", "uid", *cells())
    marks = ", ".join(["%s"] * len(names))
    cql = f"INSERT INTO $truth ({', '.join(names)}) VALUES ({marks}) {condition}"
    return lambda scene, place: scene.execute(cql, *place.ids.values(), *cells().values())


TRUTH_INSERTS: dict[str, Change] = {
    "a_plain_insert": inserted(""),
    "a_lightweight_insert": inserted("IF NOT EXISTS"),
    "an_update_that_makes_the_row": lambda scene, place: scene.write_truth(place, cells()),
}


# --- the projection changes, the truth does not


PROJECTION_CHANGES: dict[str, Change] = {
    "projected_row_is_inserted": to_projection(
        "INSERT INTO $projection (mailboxid, uid, flagseen) VALUES (%s, %s, true)", where=""
    ),
    "projected_cell_is_updated": to_projection("UPDATE $projection SET flagseen = true"),
    "projected_set_gains_an_element": to_projection(
        "UPDATE $projection SET userflags = userflags + {'stale'}"
    ),
    "projected_set_loses_an_element": to_projection(
        "UPDATE $projection SET userflags = userflags - {'kept'}"
    ),
    "projected_set_is_replaced": to_projection("UPDATE $projection SET userflags = {'stale'}"),
    "projected_cell_is_deleted": to_projection("DELETE headercontent FROM $projection"),
    "projected_messageid_is_deleted": to_projection("DELETE messageid FROM $projection"),
    # its event names no message: only what was remembered leads to the truth
    "projected_row_is_deleted": Scene.delete_projection,
    "projected_range_is_deleted": to_projection(
        "DELETE FROM $projection", "WHERE mailboxid = %s AND uid >= %s"
    ),
    "projected_mailbox_is_deleted": lambda scene, place: scene.execute(
        "DELETE FROM $projection WHERE mailboxid = %s", place.mailboxid
    ),
}

LATE, EXPIRES = "late_partial_update_after_a_delete", "a_row_expires"


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
def places(scene: Scene) -> dict[str, Place]:
    """One message for each change, all examined before any is changed."""
    changes = {**TRUTH_UPDATES, **TRUTH_DELETES, **PROJECTION_CHANGES}
    changes[LATE] = late_partial_update_after_a_delete
    found = {change: Place() for change in changes}
    expiring = Place()
    a_row_expires(scene, expiring)
    twice = twin(found[OF_TWO_UIDS])
    for place in (*found.values(), twice):
        scene.write_both(place, cells())
    scene.await_remembered([expiring, *found.values(), twice])
    scene.await_all_examined()
    found |= {change: Place() for change in TRUTH_INSERTS}
    for name, change in {**changes, **TRUTH_INSERTS}.items():
        change(scene, found[name])
    return {**found, THE_OTHER_UID: twice, EXPIRES: expiring}


@pytest.mark.parametrize("change", TRUTH_UPDATES)
def test_an_update_of_the_truth_reaches_the_projection(
    scene: Scene, places: dict[str, Place], change: str
) -> None:
    place = places[change]
    scene.await_verified(place.row)
    assert scene.kinds(place.row) == {"differing_cells"}
    assert scene.agrees(place)
    assert scene.projected_at(place.row) != {**place.ids, **cells()}


@pytest.mark.parametrize("change", TRUTH_INSERTS)
def test_a_new_row_of_the_truth_reaches_the_projection(
    scene: Scene, places: dict[str, Place], change: str
) -> None:
    place = places[change]
    scene.await_verified(place.row)
    assert scene.kinds(place.row) == {"missing_row"}
    assert scene.projected_at(place.row) == {**place.ids, **cells()}


@pytest.mark.parametrize("change", [*TRUTH_DELETES, THE_OTHER_UID, LATE, EXPIRES])
def test_a_row_that_the_truth_has_no_more_leaves_the_projection(
    scene: Scene, places: dict[str, Place], change: str
) -> None:
    place = places[change]
    until("the truth has none", lambda: scene.truth_at(place) is None)
    scene.await_verified(place.row)
    assert scene.kinds(place.row) == {"extra_row"}
    assert scene.lacks(place.row)


@pytest.mark.parametrize("change", PROJECTION_CHANGES)
def test_a_change_of_the_projection_alone_is_undone(
    scene: Scene, places: dict[str, Place], change: str
) -> None:
    place = places[change]
    scene.await_verified(place.row)
    assert scene.projected_at(place.row) == {**place.ids, **cells()}
