"""What the tests of three nodes share: a stream's settings, differences and their ends."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.stack.conftest import LATEST, TALLIES
from tests.stack.counted import Counted
from tests.stack.delays import delays
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

USUAL = 15.0
"""Seconds within which canaries come back on a busy machine."""
LOST_AFTER = 60.0
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "stream": {"delay": LATEST},
    "tally": TALLIES,
    "canary": {"lost_after": LOST_AFTER},
    "repair": {"recheck_interval": 600},
}
BEHIND = "is not looked at yet"
"""In the reason for which a removal waits."""


def await_canaries(scene: Scene) -> None:
    """Until those of all three nodes come back soon."""

    def keep_up() -> bool:
        found = delays(scene)
        return len(found) == 3 and max(found.values()) < USUAL

    until("canaries of all nodes come back", keep_up)


def repair_one(scene: Scene) -> Place:
    """A row whose second write is lost, once it is repaired and verified."""
    place = Place()
    scene.write_truth(place, cells())
    until("a missing row is repaired", partial(scene.agrees, place))
    scene.await_verified(place.row)
    return place


def remove_one(scene: Scene) -> Place:
    """A row whose delete is lost, once it is removed."""
    place = Place()
    scene.leave_behind(place)
    until("a row left behind is removed", partial(scene.lacks, place.row))
    return place


def count_one(scene: Scene) -> Counted:
    """A mailbox whose counters were never written, once they are right."""
    box = Counted(scene).create().hold(seen=1, unseen=1)
    box.await_counters((2, 1))
    return box
