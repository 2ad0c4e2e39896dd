"""Many rows leave the truth at once: a mailbox is held, the breaker opens, a person decides.

Where deletes were heard, limits keep what is removed small. TRUNCATE makes no event: that the truth
is gone is only seen when a key is looked at again, and then nothing is removed at all.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.stack.scenes import Place, Scene, cells, mailbox
from tests.stack.streams import until

pytestmark = pytest.mark.stack

REMOVALS_A_MINUTE = 100
"""The default limit; mailboxes of 10 rows or more have a limit of their own: none."""


@dataclass
class Mailboxes:
    """Rows that were consistent until the truth lost them."""

    small: list[Place]
    large: list[Place]
    many: list[Place]


@pytest.fixture(scope="module")
def mailboxes(scene: Scene) -> Iterator[Mailboxes]:
    """Examined while all was well. Leaves the breaker closed."""
    found = Mailboxes(mailbox(5), mailbox(12), many_mailboxes())
    examined(scene, [*found.small, *found.large, *found.many])
    yield found
    scene.execute("TRUNCATE $projection")  # as the truth: events that are sent again differ nowhere
    scene.command("resume")


def many_mailboxes() -> list[Place]:
    """More rows than a minute's removals may be, in mailboxes that may lose all of theirs."""
    return [place for _ in range(21) for place in mailbox(5)]


def examined(scene: Scene, places: list[Place]) -> None:
    """Write these messages, as they should be, and wait until each was examined."""
    for place in places:
        scene.write_both(place, cells())
    scene.await_remembered(places)
    scene.await_all_examined()


def delete_from_the_truth(scene: Scene, places: list[Place]) -> None:
    """As the mail server expunges; its deletes in the projection are all lost."""
    ids = [(place.messageid, place.mailboxid) for place in places]
    scene.execute_many("DELETE FROM $truth WHERE messageid = ? AND mailboxid = ?", ids)


def touch(scene: Scene, places: list[Place]) -> None:
    """A user opens these messages: an event for each."""
    open_it = "UPDATE $projection SET flagseen = true WHERE mailboxid = ? AND uid = ?"
    scene.execute_many(open_it, [place.row for place in places])


def left(scene: Scene, places: list[Place]) -> list[Place]:
    return [place for place in places if not scene.lacks(place.row)]


def test_a_small_mailbox_is_emptied_and_one_of_ten_rows_or_more_is_held(
    scene: Scene, mailboxes: Mailboxes
) -> None:
    delete_from_the_truth(scene, [*mailboxes.small, *mailboxes.large])
    for place in mailboxes.large:
        scene.reported(place.row, "mailbox_without_truth")
    until("the small mailbox is empty", lambda: not left(scene, mailboxes.small))
    assert left(scene, mailboxes.large) == mailboxes.large
    assert scene.metric("reconciler_breaker_open") == 0


@pytest.fixture(scope="module")
def opened(scene: Scene, mailboxes: Mailboxes) -> Mailboxes:
    """More removals than a minute may have: the breaker is open."""
    delete_from_the_truth(scene, mailboxes.many)
    until("the breaker opens", lambda: scene.stream.said("breaker removals opened"))
    rows = {(str(place.mailboxid), place.uid) for place in mailboxes.many}
    until("all were examined", lambda: rows <= found_so_far(scene))
    return mailboxes


def found_so_far(scene: Scene) -> set[tuple[str, int]]:
    return {(str(each["mailboxid"]), int(each["uid"])) for each in scene.stream.findings()}


def test_more_removals_than_a_minute_may_have_open_the_breaker(
    scene: Scene, opened: Mailboxes
) -> None:
    removed = len(opened.many) - len(left(scene, opened.many))
    assert removed <= REMOVALS_A_MINUTE
    assert scene.metric("reconciler_breaker_open", breaker="removals") == 1
    assert scene.metric("reconciler_breaker_open", breaker="repairs") == 0
    assert left(scene, opened.large) == opened.large


def test_while_it_is_open_other_repairs_go_on_and_removals_do_not(
    scene: Scene, opened: Mailboxes
) -> None:
    missing, orphan = Place(), Place()
    scene.leave_behind(orphan)
    scene.write_truth(missing, cells())
    scene.await_verified(missing.row)
    held = until("the orphan is held", lambda: scene.findings(orphan.row, state="held"))
    assert not scene.lacks(orphan.row)
    assert "breaker removals" in held[0]["message"]


def test_resume_lets_the_held_removals_go_and_a_large_mailbox_still_waits(
    scene: Scene, opened: Mailboxes
) -> None:
    scene.succeed("resume")
    until("the small mailboxes are empty", lambda: not left(scene, opened.many))
    assert scene.metric("reconciler_breaker_open") == 0
    assert left(scene, opened.large) == opened.large


def test_a_held_mailbox_is_emptied_when_a_person_accepts_it(
    scene: Scene, opened: Mailboxes
) -> None:
    mailboxid = str(opened.large[0].mailboxid)
    scene.succeed("findings", "--mailbox", mailboxid, "--accept", "--all", "--yes")
    until("the large mailbox is empty", lambda: not left(scene, opened.large))
    for place in opened.large:
        scene.await_verified(place.row)


def test_of_a_truth_that_was_emptied_without_deletes_nothing_is_removed(
    scene: Scene, opened: Mailboxes
) -> None:
    places = many_mailboxes()
    examined(scene, places)
    scene.execute("TRUNCATE $truth")
    touch(scene, places)
    for place in places:
        scene.reported(place.row, "absent_without_delete")
    until(
        "the alert ReconcilerTruthLostRows counts what is open",
        lambda: counted(scene) == len(lost(scene)),
    )
    assert {(str(place.mailboxid), place.uid) for place in places} <= lost(scene)
    assert left(scene, places) == places


def counted(scene: Scene) -> float:
    labels = {"projection": "messages", "kind": "absent_without_delete", "state": "reported"}
    return scene.metric("reconciler_open_findings", **labels)


def lost(scene: Scene) -> set[tuple[str, int]]:
    """The rows that wait so: those of other tests, too, once they are looked at again."""
    words = ("--kind", "absent_without_delete", "--format", "jsonl", "--limit", "1000")
    listed = scene.command("findings", *words).stdout
    return {(each["mailboxid"], int(each["uid"])) for each in map(json.loads, listed.splitlines())}
