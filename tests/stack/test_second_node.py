"""A second node joins while mail is written: its canaries, its agent, its share of the rows.

One stack and one stream of this file's own.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from cassandra.cluster import Session

from deploy.embedded.node import StackNode
from tests.stack.conftest import LATEST, TALLIES, Scenes
from tests.stack.counted import Counted
from tests.stack.delays import delays
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="capture")]

SILENT, USUAL = 30.0, 15.0
"""Seconds: an agent that is away, and one that keeps up on a busy machine."""
LOST_AFTER, EVERY = 20.0, 0.2
"""Seconds until a canary counts as lost, and between two messages."""


@pytest.fixture(scope="module")
def live(own_scenes: Scenes, node: StackNode) -> Iterator[Scene]:
    """The node lives longer than the stream."""
    changes = {
        "stream": {"delay": LATEST},
        "tally": TALLIES,
        "canary": {"usual_delay": SILENT, "lost_after": LOST_AFTER},
    }
    yield from own_scenes(changes)


@pytest.fixture(scope="module")
def lost(live: Scene, node: StackNode) -> list[Place]:
    """It has joined; the messages whose row of the listing was lost meanwhile."""
    until("the first node's canaries come back", lambda: delays(live))
    with writing(live) as found:
        node.join()
        until("canaries of both come back", lambda: len(delays(live)) == 2)
    return found


@contextmanager
def writing(scene: Scene) -> Iterator[list[Place]]:
    """A message now and then whose second write is lost."""
    lost: list[Place] = []
    over = threading.Event()

    def write() -> None:
        while not over.wait(EVERY):
            place = Place()
            scene.write_truth(place, cells())
            lost.append(place)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield lost
    finally:
        over.set()
        thread.join()


def owner(session: Session, scene: Scene, place: Place) -> str:
    """The address of the node that has a message's truth."""
    key = place.messageid.bytes
    (host,) = session.cluster.metadata.get_replicas(scene.keyspace, key)
    return str(host.address)


def test_what_was_lost_while_it_joined_is_repaired(live: Scene, lost: list[Place]) -> None:
    for place in lost:
        until("a row that was lost meanwhile is there", partial(live.agrees, place))
    assert live.metric("reconciler_losses_total") == 0


@pytest.mark.usefixtures("lost")
def test_rows_and_counters_of_both_nodes_are_repaired(live: Scene, own_session: Session) -> None:
    own_session.cluster.refresh_nodes(force_token_rebuild=True)
    places = [Place() for _ in range(20)]
    assert {owner(own_session, live, each) for each in places} == {"127.0.0.1", "127.0.0.2"}
    boxes = [Counted(live).create().hold(seen=1, unseen=1) for _ in range(6)]
    for place in places:
        live.write_truth(place, cells())
    for place in places:
        until("a row of either node is there", partial(live.agrees, place))
    for box in boxes:
        box.await_counters((2, 1))


@pytest.mark.usefixtures("lost")
def test_while_its_agent_is_silent_no_counter_is_judged(live: Scene, node: StackNode) -> None:
    until("both keep up", lambda: max(delays(live).values()) < USUAL)
    node.agent.pause()
    until("its silence is seen", lambda: max(delays(live).values()) > SILENT)
    assert min(delays(live).values()) < SILENT
    box = Counted(live).create().hold(seen=1, unseen=1)
    until("its silence lasts", lambda: max(delays(live).values()) > 2 * SILENT)
    assert box.counters() is None
    node.agent.resume()
    box.await_counters((2, 1))
    assert live.metric("reconciler_losses_total") == 0


@pytest.mark.usefixtures("lost")
def test_when_it_has_left_the_first_node_goes_on_alone(live: Scene, node: StackNode) -> None:
    node.leave()
    place, box = Place(), Counted(live).create().hold(seen=1, unseen=1)
    live.write_truth(place, cells())
    until("a row that it had is repaired", partial(live.agrees, place))
    until("its canaries are not waited for", lambda: live.stream.said("is gone: its canaries"))
    box.touch()
    box.await_counters((2, 1))
    assert live.metric("reconciler_losses_total") == 0
