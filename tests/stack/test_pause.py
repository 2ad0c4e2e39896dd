"""Promise 2 holds while clocks are near each other: while they are not, nothing is repaired.

Whatever is found is held with that reason, no row is written, and it goes on when that is over.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.stack.scenes import SECOND_US, Cells, Place, Scene, cells, now_us
from tests.stack.streams import until

pytestmark = pytest.mark.stack

AHEAD_US = 60 * SECOND_US
"""So far ahead is a writer's clock: more than half of any delay."""


@dataclass
class Damage:
    """A lost row, a wrong cell, and a row without a truth; with the projection as it was left."""

    missing: Place = field(default_factory=Place)
    wrong: Place = field(default_factory=Place)
    orphan: Place = field(default_factory=Place)
    left: dict[Place, tuple[Cells | None, dict[str, int]]] = field(default_factory=dict)

    @property
    def places(self) -> tuple[Place, ...]:
        return self.missing, self.wrong, self.orphan

    def plant(self, scene: Scene) -> None:
        scene.write_truth(self.missing, cells())
        scene.write_both(self.wrong, cells())
        scene.write_projection(self.wrong, {"flagseen": True})
        scene.write_projection(self.orphan, {"messageid": self.orphan.messageid, **cells()})
        self.left = {place: as_stored(scene, place) for place in self.places}

    def is_held(self, scene: Scene, because: str) -> bool:
        """Whether each was found, and is held for this reason."""
        return all(scene.is_held(place.row, because) for place in self.places)

    def is_untouched(self, scene: Scene) -> bool:
        """Whether nobody has written to the projection, or meant to."""
        states = {each["state"] for place in self.places for each in scene.findings(place.row)}
        stored = {place: as_stored(scene, place) for place in self.places}
        return stored == self.left and "intended" not in states

    def await_repaired(self, scene: Scene) -> None:
        for place in self.places:
            scene.await_verified(place.row)
            assert scene.agrees(place)


def as_stored(scene: Scene, place: Place) -> tuple[Cells | None, dict[str, int]]:
    """The projection row and its write times."""
    return scene.projected_at(place.row), scene.write_times(place.row)


# --- a node's clock


@pytest.mark.long(part="races")
def test_while_a_nodes_clock_differs_repairs_are_held_and_go_on_when_it_is_right(
    skewed_scene: tuple[Scene, Path],
) -> None:
    scene, ahead = skewed_scene
    until("the clocks are seen", lambda: scene.metric("reconciler_clock_skew_seconds") > 1)
    damage = Damage()
    damage.plant(scene)
    because = "held: the clock of "
    until("all is held", lambda: damage.is_held(scene, because))
    looks = scene.stream.batches()
    until("it was looked at again", lambda: scene.stream.batches() > looks + 10)
    assert damage.is_held(scene, because)
    assert damage.is_untouched(scene)
    assert scene.metric("reconciler_repairs_total") == 0
    ahead.unlink()
    damage.await_repaired(scene)


# --- a writer's clock


@contextmanager
def fast_writers(scene: Scene) -> Iterator[None]:
    """Messages come all the while, as they should be, by writers whose clocks are ahead.

    Forty a second at most, each in a mailbox of its own, which is the dearest kind: the stream has
    to keep up with them, on a slow machine too.
    """
    stop = Event()

    def write() -> None:
        while not stop.wait(0.025):
            scene.write_both(Place(), cells(), now_us() + AHEAD_US)

    writer = Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


@pytest.mark.long(part="races")
def test_while_writers_clocks_run_ahead_repairs_are_held_and_go_on_after_that(
    patient_scene: Scene,
) -> None:
    scene, damage = patient_scene, Damage()
    with fast_writers(scene):
        examined = scene.metric("reconciler_keys_examined_total")
        until(
            "what they write is examined",
            lambda: scene.metric("reconciler_keys_examined_total") > examined + 100,
        )
        damage.plant(scene)
        because = "keys were written by clocks ahead by more than half the delay"
        until("all is held", lambda: damage.is_held(scene, because))
        assert damage.is_untouched(scene)
        assert scene.metric("reconciler_repairs_total") == 0
    damage.await_repaired(scene)
