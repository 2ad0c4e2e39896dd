"""`reconcile pilot` beside a running stream: what it names is repaired, all else is held."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import pytest

from tests.stack.counted import Counted
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="commands")]

WHO = ("--who", "carol", "--reason", "a first try")
OUTSIDE = "outside the pilot of carol: a first try"


@dataclass
class Theirs:
    """A user's mailbox with three messages, and what goes wrong there."""

    scene: Scene
    box: Counted = field(init=False)
    missing: list[Place] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.box = Counted(self.scene).create().hold(2, 1).add(3, 1)

    @property
    def user(self) -> str:
        return self.box.user

    def lose_a_row(self) -> None:
        """A message that its projection lacks; it is counted."""
        place = Place(mailboxid=self.box.mailboxid, uid=100 + len(self.missing))
        self.scene.write_truth(place, cells(flagseen=True))
        self.box.add(1, 0)
        self.missing.append(place)

    def counter_held(self) -> bool:
        return any(OUTSIDE in str(each["message"]) for each in self.box.findings())


def pilot(scene: Scene, *words: str) -> str:
    return scene.succeed("pilot", *words, *WHO).stdout


def test_what_a_pilot_names_is_repaired_and_all_else_is_held_until_it_is_widened_or_ends(
    counted_scene: Scene,
) -> None:
    scene = counted_scene
    bobs, anns = Theirs(scene), Theirs(scene)
    told = pilot(scene, "--user", bobs.user)
    assert f"only user {bobs.user} is repaired" in told
    shown = partial(scene.metric, "reconciler_repairs_paused", reason="pilot")
    until("the stream knows of it", lambda: shown() == 1)
    for each in (bobs, anns):
        each.lose_a_row()
        each.box.add(2, 2)
    scene.await_verified(bobs.missing[0].row)
    until("his counter is right", lambda: bobs.box.counters() == (4, 1))
    until("her row is held", lambda: scene.is_held(anns.missing[0].row, f"held: {OUTSIDE}"))
    until("her counter is held", anns.counter_held)
    assert scene.lacks(anns.missing[0].row)
    assert anns.box.counters() == (6, 3)
    assert f"PILOT: only user {bobs.user} is repaired" in scene.command("status").stdout

    pilot(scene, "--user", anns.user, "--system", "messages")
    scene.await_verified(anns.missing[0].row)
    bobs.lose_a_row()
    until("now his is held", lambda: scene.is_held(bobs.missing[1].row, f"held: {OUTSIDE}"))
    assert anns.box.counters() == (6, 3), "counters are none of the pilot's systems"

    assert "reconcile pilot --end" in scene.command("resume").stdout
    assert "ended: only user" in pilot(scene, "--end")
    scene.await_verified(bobs.missing[1].row)
    until("her counter is right", lambda: anns.box.counters() == (4, 1))
    assert shown() == 0
    history = scene.command("pause", "--list").stdout
    assert history.count(OUTSIDE) == 2
