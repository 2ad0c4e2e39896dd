"""`reconcile pause` beside a running stream: no write follows it, and what waited is done later."""

import time

import pytest

from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

pytestmark = pytest.mark.stack

MANY = 300
"""Missing rows: more than are written in the time that a command takes."""
HELD = "held: paused by alice: a look"
AT_MOST = 2.0
"""Seconds after the command has returned: from then on nothing is sent."""


def damaged(scene: Scene, number: int) -> list[Place]:
    places = [Place() for _ in range(number)]
    for place in places:
        scene.write_truth(place, cells())
    return places


def repaired(scene: Scene, places: list[Place]) -> set[Place]:
    return {place for place in places if not scene.lacks(place.row)}


@pytest.mark.long(part="commands")
def test_in_the_middle_of_a_slice_writing_stops_and_goes_on_when_it_is_resumed(
    scene: Scene,
) -> None:
    places = damaged(scene, MANY)
    until("the first are repaired", lambda: repaired(scene, places))
    scene.succeed("pause", "--reason", "a look", "--who", "alice")
    time.sleep(AT_MOST)
    done = repaired(scene, places)
    shown = "reconciler_repairs_paused"
    until("it is shown", lambda: scene.metric(shown, reason="pause") == 1)
    left = [place for place in places if place not in done]
    late = Place()
    scene.write_truth(late, cells())
    until("what is found is held", lambda: scene.is_held(late.row, HELD))
    assert repaired(scene, places) == done
    told = scene.command("status").stdout
    assert "PAUSED: repairs of all are paused by alice: a look" in told
    answer = scene.command("resume", "--yes", "--who", "bob", "--reason", "it was nothing")
    assert "pause of all, paused by alice: a look" in answer.stdout
    for place in (*left, late):
        scene.await_verified(place.row)
    assert scene.metric(shown, reason="pause") == 0
    assert scene.stream.said("repairs of all are paused by alice: a look")
    assert scene.stream.said("repairs of all go on: resumed by bob: it was nothing")
    assert "by bob: it was nothing" in scene.command("pause", "--list").stdout


def test_removals_alone_can_be_paused(scene: Scene) -> None:
    scene.succeed("pause", "removals", "--reason", "a look", "--who", "alice")
    orphan, missing = Place(), Place()
    scene.leave_behind(orphan)
    scene.write_truth(missing, cells())
    scene.await_verified(missing.row)
    until("the orphan is held", lambda: scene.is_held(orphan.row, HELD))
    assert not scene.lacks(orphan.row)
    scene.succeed("resume", "--pause", "removals", "--yes")
    scene.await_verified(orphan.row)
    assert scene.lacks(orphan.row)
