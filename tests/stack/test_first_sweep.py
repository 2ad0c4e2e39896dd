"""The first sweep of a keyspace with a past: what waited for whole memory is settled after it.

Counters become right both ways, and nothing is unresolved any more. What nobody can know the reason
of still waits for a person.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from reconcilers.counters.drift import LIST_MAY_LACK_ROWS
from tests.stack.conftest import LATEST, TALLIES, Changes, Scenes
from tests.stack.counted import SIZE, Counted
from tests.stack.pasts import (
    QUIET,
    is_marked,
    mark_deleted,
    places,
    unresolved,
)
from tests.stack.scenes import Answer, Place, Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="sweeps")]

SEEN, UNSEEN = 3, 2
COUNT = SEEN + UNSEEN
RIGHT, RIGHT_QUOTA = (COUNT, UNSEEN), (COUNT, COUNT * SIZE)
OFF_BY = {"too high": 1, "too low": -1, "right": 0, "a row was lost": 0}


@dataclass
class Past:
    """Mail of before. ``late`` and ``gone`` are touched before the sweep, and told as unresolved.

    ``boxes`` by how much their counters and their user's quota are off; ``lost`` is the row that
    one of them lacks in the listing.
    """

    scene: Scene
    boxes: dict[str, Counted] = field(default_factory=dict)
    partial: list[Place] = field(default_factory=lambda: places(3))
    unknown: list[Place] = field(default_factory=lambda: places(3))
    orphans: list[Place] = field(default_factory=lambda: places(3))
    late: Place = field(default_factory=Place)
    gone: Place = field(default_factory=Place)

    def write(self) -> "Past":
        """All of it, unheard."""
        scene = self.scene
        for name, off in OFF_BY.items():
            box = Counted(scene).create().hold(SEEN, UNSEEN).add(COUNT + off, UNSEEN + off)
            self.boxes[name] = box.add_quota(COUNT + off, (COUNT + off) * SIZE)
        scene.delete_projection(self.lost)
        for place in (*self.partial, self.late):
            scene.write_projection(place, {"flagseen": True, "modseq": 9})
        for place in self.unknown:
            mark_deleted(scene, place)
        for place in (*self.orphans, self.gone):
            scene.write_projection(place, {"messageid": place.messageid, **cells(**QUIET)})
        return self

    @property
    def lost(self) -> Place:
        return self.boxes["a row was lost"].places[-1]


@pytest.fixture(scope="module")
def past(scenes: Scenes, mail_keyspace: str) -> Iterator[Past]:
    """A stream that does not sweep by itself; its users have touched some of the old mail."""
    changes: Changes = {
        "stream": {"delay": LATEST},
        "repair": {"projections": ["messages", "deleted_uids"], "recheck_interval": 10},
        "tally": TALLIES,
        "sweep": {"ranges": 8},
    }
    for made in scenes.over(lambda scene: Past(scene).write(), changes):
        made.scene.write_projection(made.late, {"flagseen": False, "modseq": 10})
        made.scene.delete_projection(made.gone)  # an expunge: the truth knows nothing more of it
        made.boxes["too high"].touch()
        yield made


@pytest.fixture(scope="module")
def swept(past: Past) -> Answer:
    """The sweep, begun when all that waits for it was told."""
    scene = past.scene
    for place in (past.late, past.gone):
        scene.reported(place.row, "unresolved")
    too_high = past.boxes["too high"]
    held = until("it is not lowered", too_high.findings)[-1]
    assert held["state"] == "held"
    assert held["message"].endswith(LIST_MAY_LACK_ROWS.why)
    return scene.command("sweep", "--reason", "the first")


def test_memory_is_whole(past: Past, swept: Answer) -> None:
    assert swept.returncode == 0, swept.stdout + swept.stderr
    assert "lineage is complete" in swept.stdout
    assert "lineage is complete" in past.scene.command("status").stdout


def test_what_names_no_message_is_removed(past: Past, swept: Answer) -> None:
    scene = past.scene
    for place in (*past.partial, past.late):
        until("the partial row is gone", partial(scene.lacks, place.row))
    until("the index rows are gone", lambda: not any(is_marked(scene, e) for e in past.unknown))


def test_nothing_is_unresolved(past: Past, swept: Answer) -> None:
    until("nothing is unresolved", lambda: not unresolved(past.scene))
    until("status says so", lambda: _status(past.scene)["unresolved"] == 0)


def _status(scene: Scene) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(scene.command("status", "--format", "json").stdout)
    return told


def test_what_nobody_can_know_waits_for_a_person(past: Past, swept: Answer) -> None:
    for place in past.orphans:
        past.scene.reported(place.row, "ambiguous_range_delete")
        assert not past.scene.lacks(place.row)


@pytest.mark.parametrize("name", ["too high", "too low"])
def test_a_counter_and_a_quota_are_settled_both_ways(past: Past, swept: Answer, name: str) -> None:
    box = past.boxes[name]
    until("the counters are right", lambda: box.counters() == RIGHT)
    until("the quota is right", lambda: box.quota() == RIGHT_QUOTA)
    box.await_verified()


def test_what_is_right_is_not_corrected_though_a_row_was_lost(past: Past, swept: Answer) -> None:
    until("the row is back", lambda: past.scene.agrees(past.lost))
    # its correction comes after that of whatever was wrong before
    past.boxes["too low"].add(1, 1).touch()
    past.boxes["too low"].await_counters(RIGHT)
    for name in ("right", "a row was lost"):
        box = past.boxes[name]
        assert box.counters() == RIGHT
        assert box.quota() == RIGHT_QUOTA
        assert {each["state"] for each in box.findings()} <= {"held"}
