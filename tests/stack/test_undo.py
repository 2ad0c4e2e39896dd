"""`reconcile findings --undo` beside a running stream: the before-image comes back, and stays.

A key that was undone is on hold: it is seen to differ, and repaired only when it is released.
"""

import json
from dataclasses import dataclass, field
from functools import partial

import pytest

from tests.stack.counted import Counted
from tests.stack.indexes import Index
from tests.stack.pasts import QUIET
from tests.stack.scenes import Answer, Cells, Place, Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="commands")]

WHO = ("--who", "ana", "--reason", "a test")
HELD = "held: on hold by ana: a test"


@dataclass
class Repaired:
    """Rows that were wrong, one for each test, and whose repairs have been seen to hold."""

    added: Place = field(default_factory=Place)
    corrected: Place = field(default_factory=Place)
    removed: Place = field(default_factory=Place)
    changed: Place = field(default_factory=Place)
    gone: Place = field(default_factory=Place)
    index_added: Place = field(default_factory=Place)
    index_removed: Place = field(default_factory=Place)
    before: dict[Place, Cells | None] = field(default_factory=dict)

    def plant(self, scene: Scene) -> None:
        scene.write_truth(self.added, cells(**QUIET, modseq=9))
        scene.write_truth(self.corrected, cells(flagseen=True, userflags={"kept", "new"}))
        wrong = {"messageid": self.corrected.messageid, **cells(userflags={"kept", "stale"})}
        scene.write_projection(self.corrected, {**wrong, "modseq": 5, "headercontent": None})
        for place in (self.removed, self.gone):
            scene.leave_behind(place)
        scene.write_both(self.changed, cells())
        scene.write_projection(self.changed, {"flagseen": True})
        for place in (self.corrected, self.removed, self.gone):
            self.before[place] = scene.projected_at(place.row)
        scene.write_both(self.index_added, cells(**{**QUIET, "flagdeleted": True}))
        deleted_uids(scene).add(self.index_removed)
        scene.write_both(self.index_removed, cells(**QUIET))

    def await_verified(self, scene: Scene) -> None:
        rows = (self.added, self.corrected, self.removed, self.changed, self.gone)
        for place in rows:
            until(f"{place} is repaired", partial(ended, scene, place, "messages"))
        for place in (self.index_added, self.index_removed):
            until(f"{place} is repaired", partial(ended, scene, place, "deleted_uids"))


def deleted_uids(scene: Scene) -> Index:
    return Index(scene, "deleted_uids")


def ended(scene: Scene, place: Place, projection: str, times: int = 1) -> bool:
    found = scene.findings(place.row, projection=projection)
    return len([each for each in found if str(each["message"]).startswith("verified: ")]) >= times


def key(place: Place) -> str:
    return f"{place.mailboxid}/{place.uid}"


def undo(scene: Scene, place: Place, *more: str, projection: str = "messages") -> Answer:
    return scene.command("findings", "--undo", key(place), "--system", projection, *WHO, *more)


def undone(scene: Scene, place: Place, *more: str, projection: str = "messages") -> None:
    answer = undo(scene, place, *more, projection=projection)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def release(scene: Scene, place: Place) -> None:
    answer = scene.succeed("findings", "--release", key(place), "--who", "bob", "--reason", "fine")
    assert "on hold by ana: a test" in answer.stdout


def await_held(scene: Scene, place: Place, projection: str = "messages") -> None:
    """Until the stream has seen that it differs, and why it leaves it alone."""
    until(f"{place} is held", lambda: scene.is_held(place.row, HELD, projection=projection))


@pytest.fixture(scope="module")
def repaired(indexed_scene: Scene) -> Repaired:
    made = Repaired()
    made.plant(indexed_scene)
    made.await_verified(indexed_scene)
    return made


def test_a_row_that_was_added_is_taken_away_until_its_key_is_released(
    indexed_scene: Scene, repaired: Repaired
) -> None:
    scene, place = indexed_scene, repaired.added
    shown = undo(scene, place, "--dry-run")
    assert "DeleteRow" in shown.stdout, shown.stdout + shown.stderr
    assert not scene.lacks(place.row)
    undone(scene, place)
    assert scene.lacks(place.row)
    await_held(scene, place)
    listed = scene.command(
        "findings", "--on-hold", "--format", "jsonl", "--mailbox", str(place.mailboxid)
    )
    assert [json.loads(line)["who"] for line in listed.stdout.splitlines()] == ["ana"]
    scene.await_all_examined()
    assert scene.lacks(place.row)
    release(scene, place)
    until("it is repaired again", partial(ended, scene, place, "messages", 2))
    assert scene.agrees(place)


def test_cells_and_elements_are_as_they_were_before_the_repair(
    indexed_scene: Scene, repaired: Repaired
) -> None:
    scene, place = indexed_scene, repaired.corrected
    times = scene.write_times(place.row)
    undone(scene, place)
    assert scene.projected_at(place.row) == repaired.before[place]
    now = scene.write_times(place.row)
    assert {now[name] - times[name] for name in ("flagseen", "modseq")} == {1}
    await_held(scene, place)
    twice = undo(scene, place)
    assert (twice.returncode, "it was undone already" in twice.stdout) == (1, True)
    scene.write_projection(place, {"headercontent": "a user's"})
    release(scene, place)
    until("it is repaired again", partial(ended, scene, place, "messages", 2))
    assert scene.agrees(place)


def test_a_row_that_was_removed_stands_again_until_its_key_is_released(
    indexed_scene: Scene, repaired: Repaired
) -> None:
    scene, place = indexed_scene, repaired.removed
    undone(scene, place)
    assert scene.projected_at(place.row) == repaired.before[place]
    await_held(scene, place)
    scene.await_all_examined()
    assert scene.projected_at(place.row) == repaired.before[place]
    release(scene, place)
    until("it is removed again", partial(scene.lacks, place.row))


def test_what_a_user_has_changed_since_is_not_undone(
    indexed_scene: Scene, repaired: Repaired
) -> None:
    scene, place = indexed_scene, repaired.changed
    scene.write_both(place, cells(flagseen=True, modseq=20))
    before = scene.write_times(place.row)
    answer = undo(scene, place)
    assert answer.returncode == 1
    assert "flagseen" in answer.stdout
    assert "changed since the repair" in answer.stdout
    assert scene.write_times(place.row) == before
    listed = scene.command("findings", "--on-hold", "--mailbox", str(place.mailboxid))
    assert "no findings" in listed.stdout


def test_a_row_that_a_user_has_written_again_stays_as_it_is(
    indexed_scene: Scene, repaired: Repaired
) -> None:
    scene, place = indexed_scene, repaired.gone
    scene.write_both(place, cells(modseq=30))
    answer = undo(scene, place)
    assert answer.returncode == 1
    assert "somebody has written it since" in answer.stdout
    assert scene.agrees(place)


def test_while_repairs_are_paused_nothing_is_undone_unless_a_person_insists(
    indexed_scene: Scene, repaired: Repaired
) -> None:
    scene, place = indexed_scene, repaired.index_added
    scene.succeed("pause", "deleted_uids", *WHO)
    answer = undo(scene, place, projection="deleted_uids")
    assert answer.returncode == 1
    assert "repairs are paused by ana: a test (--while-paused" in answer.stdout
    assert deleted_uids(scene).has(place)
    undone(scene, place, "--while-paused", projection="deleted_uids")
    assert not deleted_uids(scene).has(place)
    scene.succeed("resume", "--pause", "deleted_uids", "--yes")
    await_held(scene, place, "deleted_uids")
    scene.await_all_examined()
    assert not deleted_uids(scene).has(place)
    release(scene, place)
    until("it is added again", partial(deleted_uids(scene).has, place))


def test_an_index_row_that_was_removed_stands_again_until_its_key_is_released(
    indexed_scene: Scene, repaired: Repaired
) -> None:
    scene, place = indexed_scene, repaired.index_removed
    undone(scene, place, projection="deleted_uids")
    assert deleted_uids(scene).has(place)
    await_held(scene, place, "deleted_uids")
    scene.await_all_examined()
    assert deleted_uids(scene).has(place)
    release(scene, place)
    until("it is removed again", lambda: not deleted_uids(scene).has(place))


def test_the_correction_of_a_counter_is_undone_until_its_key_is_released(
    counted_scene: Scene,
) -> None:
    scene = counted_scene
    box = Counted(scene).create().hold(3, 2).add(5, 1)
    until("it is corrected", lambda: box.counters() == (5, 2))
    until("it is verified", lambda: told(box, "verified: "))
    scene.succeed("findings", "--undo", "--all", "--yes", "--since", "1h", "--user", box.user, *WHO)
    assert box.counters() == (5, 1)
    box.touch()
    until("it is held", lambda: told(box, "may be wrong; held: on hold by ana: a test"))
    assert box.counters() == (5, 1)
    scene.succeed("findings", "--release", str(box.mailboxid), "--who", "bob")
    until("it is corrected again", lambda: box.counters() == (5, 2))


def told(box: Counted, text: str) -> bool:
    return any(text in str(each["message"]) for each in box.findings())
