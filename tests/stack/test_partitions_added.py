"""Partitions are added to the agents' topic on real servers: no loss is reported, all goes on.

One stack and one stream of this file's own. The agent learns of them minutes after the stream.
"""

from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest
from cassandra.cluster import Session
from kafka import KafkaAdminClient

from checkpoints.clock import now_micros, to_seconds
from deploy.embedded import Stack
from streaming.settings import CanarySettings, KafkaSettings
from streaming.topics import Watcher
from streaming.topics.lanes import lanes_of, leads_to
from tests.endpoints import Running
from tests.stack.conftest import LATEST, Scenes
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="capture")]

LOST_AFTER, USUAL = 5.0, 30.0
FEW = 7
"""Partitions before any are added."""
ROWS = f"SELECT place, lane, partitions FROM {CanarySettings().keyspace}.canary"


@pytest.fixture(scope="module")
def live(own_stack: Stack, own_running: Running, own_scenes: Scenes) -> Iterator[Scene]:
    add_partitions(own_running, FEW)
    own_stack.kill_agent()
    own_stack.start_agent()  # which knows them from its start on
    canary = {"lost_after": LOST_AFTER, "usual_delay": USUAL}
    for made in own_scenes({"stream": {"delay": LATEST}, "canary": canary}):
        until("canaries come back", partial(made.metric, "reconciler_frontier_timestamp_seconds"))
        yield made


def add_partitions(running: Running, number: int) -> None:
    """So that the agents' topic has so many."""
    admin = KafkaAdminClient(bootstrap_servers=running.endpoints.bootstrap_servers)
    admin.create_partitions({running.endpoints.topic_prefix: number})
    admin.close()


def partitions_of(running: Running) -> dict[int, int]:
    """The end of each partition of the agents' topic."""
    topic = running.endpoints.topic_prefix
    kafka = KafkaSettings(bootstrap_servers=running.endpoints.bootstrap_servers)
    with closing(Watcher(kafka)) as watcher:
        return watcher.end_offsets([topic])[topic]


def uncovered(place: str, before: int) -> int:
    """So many partitions that lanes for them do not lead to each of those before."""
    return next(
        number
        for number in range(before + 1, 64)
        if len({leads_to(place, lane, before) for lane in lanes_of(place, number)}) < before
    )


def goes_on(scene: Scene, seconds: float = 2 * LOST_AFTER) -> None:
    """The frontier passes what is written in so many seconds from now, and nothing is lost."""
    later = to_seconds(now_micros()) + seconds
    until(
        "the frontier goes on",
        lambda: scene.metric("reconciler_frontier_timestamp_seconds") > later,
    )
    until(
        "it is not behind", lambda: not scene.metric("reconciler_repairs_paused", reason="behind")
    )
    assert scene.metric("reconciler_losses_total") == 0


def test_partitions_that_are_added_are_no_loss(
    live: Scene, own_stack: Stack, own_running: Running, own_session: Session
) -> None:
    goes_on(live)
    place = next(row.place for row in own_session.execute(ROWS) if row.partitions == FEW)
    number = uncovered(place, FEW)
    add_partitions(own_running, number)
    until(
        "canaries have lanes for them",
        lambda: any(row.partitions == number for row in own_session.execute(ROWS)),
    )
    goes_on(live)
    own_stack.kill_agent()
    own_stack.start_agent()
    until("the agent knows them", lambda: all(partitions_of(own_running).values()))
    assert len(partitions_of(own_running)) == number
    goes_on(live)
    row = Place()
    live.write_truth(row, cells())
    until("its event is looked at", lambda: live.agrees(row))
