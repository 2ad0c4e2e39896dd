"""A stream on a Spark cluster whose executors are killed and paused: nothing is lost or doubled.

Executors have our packages and the code that the driver sends. Commands run beside the stream, each
with executors of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from shutil import which

import pytest

from checkpoints.clock import to_seconds
from deploy.embedded.spark_cluster import SparkCluster
from streaming.pipeline.failures import ALONE_FOR
from tests.endpoints import Running
from tests.stack.blows import Blows
from tests.stack.conftest import Scenes
from tests.stack.namespace import THERE, namespace
from tests.stack.pasts import lose, uncaptured
from tests.stack.scenes import Place, Scene, cells
from tests.stack.spark_looks import PACKAGES
from tests.stack.streams import PATIENCE, Stream, module, until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="cluster")]

LOOK = "before streaming.steps.look:Look.at"
BETWEEN_READS = "before streaming.tables.tables:Tables.truth_serially"
INTENT = "after checkpoints.cassandra.journal:CassandraJournal.put"
WRITE = "streaming.tables.tables:Tables.apply"
SCAN = "after streaming.again.scan:Scanner.sweep"
POINTS = (LOOK, BETWEEN_READS, INTENT, f"before {WRITE}", f"after {WRITE}", SCAN)
GIVEN_UP_S = 3 * to_seconds(ALONE_FOR) + PATIENCE
"""Seconds until a record is given up: the parts of its slice are tried before it."""
MANY = 24
"""More than the driver itself confirms and repairs: executors do it."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    made = SparkCluster(tmp_path_factory.mktemp("spark"), applications=2)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def blows(tmp_path_factory: pytest.TempPathFactory) -> Blows:
    return Blows(POINTS, tmp_path_factory.mktemp("blows"))


@pytest.fixture(scope="module")
def scene(scenes: Scenes, cluster: SparkCluster, blows: Blows) -> Iterator[Scene]:
    """A stream on the cluster, which looks at nothing again by itself."""
    changes = cluster.settings_for(PACKAGES)
    changes["spark"] |= blows.options(changes["spark"]["spark.submit.pyFiles"])
    changes |= {"repair": {"recheck_interval": 600}, "sweep": {"ranges": 8}}
    yield from scenes(changes)


def broken(scene: Scene) -> list[Place]:
    """Rows of mailboxes of their own, most of them missing, some wrong, some left behind."""
    missing, wrong, left = ([Place() for _ in range(each)] for each in (MANY, 4, 4))
    for place in left:
        scene.leave_behind(place)
    for place in wrong:
        scene.write_both(place, cells())
        scene.write_projection(place, {"flagseen": True})
    for place in missing:
        scene.write_truth(place, cells())
    return [*missing, *wrong, *left]


def repaired_once(scene: Scene, places: list[Place]) -> None:
    """Wait until all are verified; none of them took more than one attempt."""
    for place in places:
        scene.await_verified(place.row)
        assert scene.agrees(place)
    today = datetime.now(UTC).date()
    rows = {(str(place.mailboxid), place.uid) for place in places}
    attempts = {
        (line["mailboxid"], line["uid"]): line["attempts"]
        for day in (today - timedelta(days=1), today)
        for line in scene.journal.log(day)
        if (line.get("mailboxid"), line.get("uid")) in rows
    }
    assert attempts == dict.fromkeys(rows, 1)


def undisturbed(scene: Scene) -> None:
    """The query has never died."""
    assert scene.stream.said("the query died") == []
    assert scene.metric("reconciler_query_restarts_total") == 0


@pytest.mark.parametrize("point", [LOOK, BETWEEN_READS, INTENT, f"after {WRITE}"])
def test_an_executor_killed_at_a_step_is_replaced_and_each_row_is_repaired_once(
    scene: Scene, blows: Blows, point: str
) -> None:
    before = scene.metric("reconciler_repairs_total")
    blows.arm(point)
    places = broken(scene)
    until("an executor is killed there", partial(blows.has_hit, point))
    repaired_once(scene, places)
    assert scene.metric("reconciler_repairs_total") - before == len(places)
    until("the loss is told", lambda: scene.stream.said("an executor was lost"))
    undisturbed(scene)


def test_an_executor_that_wakes_beside_its_replacement_writes_nothing_new(
    scene: Scene, blows: Blows, cluster: SparkCluster
) -> None:
    point = f"before {WRITE}"
    blows.arm(point, "SIGSTOP")
    places = broken(scene)
    until("an executor is paused there", partial(blows.has_hit, point))
    repaired_once(scene, places)
    changed = places[:MANY]
    for place in changed:
        scene.write_both(place, cells(flagseen=True))
    for each in cluster.workers:
        each.resume()
    scene.await_all_examined()
    assert [place for place in changed if not scene.agrees(place)] == []
    undisturbed(scene)


def test_a_record_that_kills_each_executor_is_given_up_and_the_others_are_repaired(
    scene: Scene, blows: Blows
) -> None:
    """Each attempt ends several executors; a new one takes the place of each."""
    process, poison = scene.stream.session, Place()
    blows.arm_for(LOOK, str(poison.mailboxid))
    scene.write_truth(poison, cells())
    places = broken(scene)
    until("it is given up", partial(scene.stream.said, "is given up: a dead letter"), GIVEN_UP_S)
    blows.disarm(LOOK)
    for place in places:
        scene.await_verified(place.row)
    assert (scene.stream.died(), scene.stream.session) == (None, process)
    assert len(scene.stream.said("is given up: a dead letter")) == 1


@pytest.mark.skipif(os.getuid() != 0 or which("ip") is None, reason="needs root and ip")
def test_a_driver_that_is_started_in_another_folder_and_namespace_goes_on(
    scene: Scene, cluster: SparkCluster, running: Running, tmp_path: Path
) -> None:
    """It has nothing of the killed one: no checkpoint, no temporary files, no address."""
    killed = scene.stream
    before = broken(scene)
    killed.kill()
    missed = broken(scene)
    text = killed.config.read_text(encoding="utf-8")
    address = "".join(f'spark.driver.{name} = "{THERE}"\n' for name in ("host", "bindAddress"))
    for old, new in (
        (str(killed.config.parent / "checkpoint"), str(tmp_path / "checkpoint")),
        ("[spark]\n", f"[spark]\n{address}"),
    ):
        assert old in text
        text = text.replace(old, new)
    moved = tmp_path / "moved.toml"
    moved.write_text(text, encoding="utf-8")
    servers = running.endpoints
    addresses = (servers.bootstrap_servers, servers.agent_http, cluster.url)
    ports = (servers.cassandra_port, *(int(each.rpartition(":")[2]) for each in addresses))
    with (
        namespace(ports) as inside,
        Stream(moved, program=(*inside, *module("streaming.app"))) as stream,
    ):
        stream.wait_until_watching()
        for place in (*before, *missed):
            until(f"{place} is verified", partial(verified_by, (killed, stream), place))
            assert scene.agrees(place)
        assert stream.stop() == 0
    killed.start_watching()


def verified_by(streams: Iterable[Stream], place: Place) -> bool:
    """Whether one of these has seen its repair to hold."""
    found = [each for stream in streams for each in stream.findings(**place.ids)]
    return any(each["message"].startswith("verified: ") for each in found)


def test_a_sweep_beside_the_stream_finds_the_same_when_an_executor_is_killed(
    scene: Scene, blows: Blows
) -> None:
    right, missing, stale = ([Place() for _ in range(each)] for each in (40, MANY, 4))
    with uncaptured(scene):
        for place in (*right, *stale):
            scene.write_both(place, cells())
        for place in stale:
            scene.write_projection(place, {"flagseen": True})
        for place in missing:
            scene.write_truth(place, cells())
    blows.arm(SCAN)
    answer = scene.succeed("sweep", "--reason", "the first")
    assert blows.has_hit(SCAN)
    assert f"messages: missing_row: {MANY} seen" in answer.stdout
    assert "messages: differing_cells: 4 seen" in answer.stdout
    for place in (*missing, *stale):
        until(f"{place} agrees", partial(scene.agrees, place))


def test_a_replay_on_executors_finds_what_the_stream_has_passed_over(scene: Scene) -> None:
    place = Place()
    scene.write_both(place, cells())
    scene.await_all_examined()
    lose(scene, place)
    scene.stream.start_watching()
    answer = scene.succeed("replay", "--from-time", "2026-01-01T00:00")
    assert "messages: missing_row: 1 seen" in answer.stdout
    until("it is repaired", partial(scene.agrees, place))
