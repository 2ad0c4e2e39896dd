"""What the running stream reports and does not write, until a person says so.

Everything odd is planted first; each test then waits for its own. `unwritten` compares the row and
the write time of each of its cells with what they were.
"""

from dataclasses import dataclass, field, replace
from itertools import chain

import pytest

from tests.stack.scenes import SECOND_US, Cells, Place, Scene, cells, now_us

pytestmark = pytest.mark.stack


@dataclass
class Odd:
    """A place where something is odd, and its projection row as it was then."""

    place: Place
    row: Cells | None
    times: dict[str, int]
    others: list[Place] = field(default_factory=list)


def seen_now(scene: Scene, place: Place, *others: Place) -> Odd:
    return Odd(place, scene.projected_at(place.row), scene.write_times(place.row), list(others))


def unwritten(scene: Scene, odd: Odd) -> bool:
    now = seen_now(scene, odd.place)
    return (now.row, now.times) == (odd.row, odd.times)


# --- planting


def incomplete_truth_row(scene: Scene) -> Odd:
    """Of two messages in a mailbox, and of one message in two mailboxes, one row is incomplete."""
    place = Place()
    neighbours = [
        replace(Place(), mailboxid=place.mailboxid, uid=2),
        replace(Place(), messageid=place.messageid),
    ]
    scene.write_truth(place, cells(internaldate=None))
    scene.write_projection(place, {"messageid": place.messageid, **cells(flagseen=True)})
    for each in neighbours:
        scene.write_truth(each, cells())
        scene.write_projection(each, {"messageid": each.messageid, **cells(flagseen=True)})
    return seen_now(scene, place, *neighbours)


def duplicate_uid(scene: Scene) -> Odd:
    place = Place()
    second = replace(Place(), mailboxid=place.mailboxid)
    scene.write_both(place, cells(flagseen=True))
    scene.write_truth(second, cells())
    return seen_now(scene, place, second)


def shadowed_delete(scene: Scene) -> Odd:
    """A truth row of a mail server whose clock is a second ahead outlives its own delete."""
    place = Place()
    scene.write_truth(place, cells(), at=now_us() + SECOND_US)
    scene.delete_truth(place)
    return seen_now(scene, place)


def shadowed_delete_that_is_accepted(scene: Scene) -> Odd:
    return shadowed_delete(scene)


def unresolved(scene: Scene) -> Odd:
    """A row is deleted that nobody has ever seen."""
    place = Place()
    scene.delete_projection(place)
    return seen_now(scene, place)


def future_write_time(scene: Scene) -> Odd:
    """A wrong flag, written by a clock that is an hour ahead."""
    place = Place()
    scene.write_both(place, cells())
    scene.write_projection(place, {"flagseen": True}, at=now_us() + 3600 * SECOND_US)
    return seen_now(scene, place)


def expunge_the_first(scene: Scene, first: Place, second: Place) -> Odd:
    """Of two UIDs of one message in one mailbox; the truth loses both, the projection one."""
    scene.delete_truth(first)
    scene.delete_projection(first)
    return seen_now(scene, second, first)


def expunge_the_last(scene: Scene, first: Place, second: Place) -> Odd:
    """The message is nowhere else, so the mail server deletes its content."""
    odd = expunge_the_first(scene, first, second)
    scene.delete_content(first)
    return odd


def expunge_both(scene: Scene, first: Place, second: Place) -> Odd:
    """The same twice; the second delete of the projection is lost. Then the content goes."""
    odd = expunge_the_first(scene, first, second)
    scene.delete_truth(second)
    scene.delete_content(second)
    return odd


def leave_only_the_key(scene: Scene, place: Place) -> Odd:
    """A row of a deleted message that shows only its key: a delete has nothing to aim at."""
    scene.delete_truth(place)
    scene.delete_projection(place)
    scene.execute("INSERT INTO $projection (mailboxid, uid) VALUES (%s, %s)", *place.row)
    return seen_now(scene, place)


NEW = (
    incomplete_truth_row,
    duplicate_uid,
    shadowed_delete,
    shadowed_delete_that_is_accepted,
    unresolved,
    future_write_time,
)
COPIED = {
    "ambiguous_range_delete": expunge_the_first,
    "ambiguous_range_delete_that_is_accepted": expunge_the_first,
    "content_lost": expunge_the_last,
    "double_expunge": expunge_both,
}
"""What happens to messages that were copied within their mailbox."""


@pytest.fixture(scope="module")
def odd(scene: Scene) -> dict[str, Odd]:
    """Everything odd of this module, before the first wait but that for the older messages."""
    emptied, copies = Place(), {name: (first := Place(), replace(first, uid=2)) for name in COPIED}
    older = [emptied, *chain(*copies.values())]
    for each in older:
        scene.write_content(each)
        scene.write_both(each, cells())
    found = {plant.__name__: plant(scene) for plant in NEW}
    scene.await_remembered(older)
    for name, change in COPIED.items():
        found[name] = change(scene, *copies[name])
    return {**found, "unguardable": leave_only_the_key(scene, emptied)}


@pytest.fixture(scope="module")
def decided(scene: Scene, odd: dict[str, Odd]) -> dict[str, Odd]:
    """What was held, once a person has accepted it."""
    names = ("ambiguous_range_delete", "shadowed_delete")
    rows = {kind: odd[f"{kind}_that_is_accepted"].place.row for kind in names}
    for kind, row in rows.items():
        scene.reported(row, kind)
    scene.succeed("findings", "--accept", *(slot(row) for row in rows.values()))
    return odd


# --- the tests


@pytest.mark.parametrize(
    "kind",
    [
        "incomplete_truth_row",
        "duplicate_uid",
        "shadowed_delete",
        "unresolved",
        "ambiguous_range_delete",
        "content_lost",
        "future_write_time",
        "unguardable",
    ],
)
def test_it_is_reported_and_nothing_is_written(
    scene: Scene, odd: dict[str, Odd], kind: str
) -> None:
    here = odd[kind]
    scene.reported(here.place.row, kind)
    assert unwritten(scene, here)
    assert scene.kinds(here.place.row) == {kind}


def test_nothing_was_written_either_when_all_had_been_examined_again(
    scene: Scene, odd: dict[str, Odd]
) -> None:
    scene.await_all_examined()
    for name, here in odd.items():
        if not name.endswith("accepted"):
            assert unwritten(scene, here), name


def test_the_neighbours_of_an_incomplete_truth_row_are_repaired(
    scene: Scene, odd: dict[str, Odd]
) -> None:
    for neighbour in odd["incomplete_truth_row"].others:
        scene.await_verified(neighbour.row)
        assert scene.agrees(neighbour)


def test_a_duplicate_uid_is_reported_with_both_messages(scene: Scene, odd: dict[str, Odd]) -> None:
    here = odd["duplicate_uid"]
    sentence = scene.reported(here.place.row, "duplicate_uid")["message"]
    for each in (here.place, *here.others):
        assert str(each.messageid) in sentence


def test_what_is_left_of_a_lost_message_says_which_it_was(
    scene: Scene, odd: dict[str, Odd]
) -> None:
    here = odd["content_lost"].place
    assert str(here.messageid) in scene.reported(here.row, "content_lost")["message"]


def test_a_double_expunge_waits_for_a_person_once_the_content_is_gone(
    scene: Scene, odd: dict[str, Odd]
) -> None:
    """It is not told from one delete that was sent again, which took a row that its user kept."""
    here = odd["double_expunge"].place
    assert str(here.messageid) in scene.reported(here.row, "content_lost")["message"]


# --- what a person decides


def test_an_accepted_ambiguous_range_delete_is_carried_out(
    scene: Scene, decided: dict[str, Odd]
) -> None:
    row = decided["ambiguous_range_delete_that_is_accepted"].place.row
    scene.await_verified(row)
    assert scene.lacks(row)


def test_an_accepted_shadowed_delete_is_added_again(scene: Scene, decided: dict[str, Odd]) -> None:
    place = decided["shadowed_delete_that_is_accepted"].place
    scene.await_verified(place.row)
    assert scene.projected_at(place.row) == {**place.ids, **cells()}


def test_what_no_person_can_decide_here_is_refused_with_the_reason(
    scene: Scene, odd: dict[str, Odd]
) -> None:
    here = odd["incomplete_truth_row"]
    scene.reported(here.place.row, "incomplete_truth_row")
    answer = scene.command("findings", "--accept", slot(here.place.row))
    assert answer.returncode == 1
    assert "cannot be decided here" in answer.stdout
    assert unwritten(scene, here)


def slot(row: tuple[object, int]) -> str:
    return f"{row[0]}/{row[1]}"
