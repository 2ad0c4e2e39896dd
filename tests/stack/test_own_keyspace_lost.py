"""Our own keyspace is truncated, dropped or restored: nothing is written until a person says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from reconcilers.limits.generation import GENERATIONS
from tests.stack.conftest import Scenes
from tests.stack.scenes import Place, Scene, begin_at_the_end, cells
from tests.stack.streams import until

pytestmark = pytest.mark.stack

DOUBT = "our keyspace is not as it was left"
WAY_OUT = ("resume", "--own-keyspace", "--who", "bob", "--reason", "pauses are set again")


@pytest.fixture
def lost_scene(scenes: Scenes) -> Iterator[Scene]:
    """A stream of the test's own, whose keyspace it may lose."""
    yield from scenes({})


def lose_a_row(scene: Scene) -> Place:
    place = Place()
    scene.write_truth(place, cells())
    return place


def await_held(scene: Scene, place: Place, because: str) -> None:
    until(f"it is held: {because}", lambda: scene.is_held(place.row, because))
    assert scene.lacks(place.row)


def in_doubt(scene: Scene) -> bool:
    return scene.metric("reconciler_repairs_paused", reason="own_keyspace") == 1


def pause(scene: Scene) -> Place:
    """A row that is held by a person's pause."""
    scene.succeed("pause", "--reason", "a look", "--who", "alice")
    until("it is known", lambda: scene.metric("reconciler_repairs_paused", reason="pause") == 1)
    place = lose_a_row(scene)
    await_held(scene, place, "paused by alice: a look")
    return place


def take_as_right(scene: Scene, *places: Place) -> None:
    """The operator's way out: what waited is repaired."""
    answer = scene.succeed(*WAY_OUT)
    assert "our keyspace was not as it was left: " in answer.stdout
    for place in places:
        scene.await_verified(place.row)
    assert not in_doubt(scene)
    assert "HELD" not in scene.command("status").stdout


def test_while_tables_that_hold_repairs_back_are_truncated_nothing_is_written(
    lost_scene: Scene,
) -> None:
    scene = lost_scene
    places = [pause(scene)]
    for table in ("pauses", "holds", "breakers"):
        scene.execute(f"TRUNCATE $own.{table}")
        until("it is noticed", lambda: in_doubt(scene))
    places.append(lose_a_row(scene))
    await_held(scene, places[-1], DOUBT)
    assert scene.lacks(places[0].row)
    assert scene.metric("reconciler_repairs_total") == 0
    told = scene.command("status").stdout
    assert f"HELD: repairs of all are paused by the reconciler itself: {DOUBT}: tables" in told
    assert scene.stream.said("look first, then `reconcile resume --own-keyspace`")
    assert scene.stream.said("lineage is reset")
    take_as_right(scene, *places)


@pytest.mark.long(part="commands")
def test_between_two_starts_and_from_an_older_copy_it_is_noticed_too(
    lost_scene: Scene, cassandra: Session
) -> None:
    scene = lost_scene
    copy = {each: generation(scene, each) for each in GENERATIONS}
    assert scene.stream.stop() == 0
    scene.stream.start_watching()
    until("its start has raised them", lambda: generation(scene, "owner") > copy["owner"])
    places = [pause(scene)]
    for table, where in WHERE.items():
        scene.execute(f"TRUNCATE $own.{table}")
        scene.execute(f"UPDATE $own.{table} SET generation = {copy[table]} WHERE {where}")
    until("it is noticed", lambda: in_doubt(scene))
    places.append(lose_a_row(scene))
    await_held(scene, places[-1], DOUBT)
    assert scene.lacks(places[0].row)
    take_as_right(scene, *places)

    assert scene.stream.stop() == 0
    scene.execute("DROP KEYSPACE $own")
    begin_at_the_end(cassandra, scene.stream.config)
    scene.stream.start_watching()
    place = lose_a_row(scene)
    await_held(scene, place, DOUBT)
    take_as_right(scene, place)


WHERE = {
    "owner": "name = 'owner'",
    "pauses": "scope = '$mail'",
    "holds": "family = 'generation' AND bucket = 0",
    "breakers": "scope = '$mail'",
}


def generation(scene: Scene, table: str) -> int:
    rows = scene.execute(f"SELECT generation FROM $own.{table} WHERE {WHERE[table]} LIMIT 1")
    return int(next((row[0] for row in rows if row[0] is not None), 0))
