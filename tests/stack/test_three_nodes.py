"""Three nodes with a copy of each row on each: one is killed with its agent, is back, is replaced.

One stack and one stream of this file's own. The tests are steps, in this order.
"""

from collections.abc import Iterator
from functools import partial

import pytest

from deploy.embedded import Stack
from deploy.embedded.spec import CassandraRelease
from tests.sessions import replication_of
from tests.stack.conftest import Scenes
from tests.stack.delays import delays
from tests.stack.embedded import wanted
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="copies")]

USUAL = 15.0
"""Seconds within which canaries come back on a busy machine."""
LOST_AFTER = 60.0
HOSTS = {"127.0.0.1", "127.0.0.2", "127.0.0.3"}


@pytest.fixture(scope="module")
def own_stack(
    release: CassandraRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """In place of that of one node."""
    data = tmp_path_factory.mktemp("three")
    with Stack(data, wanted(release=release, data_centres=(3,))) as started:
        yield started


@pytest.fixture(scope="module")
def live(own_scenes: Scenes) -> Iterator[Scene]:
    yield from own_scenes({"canary": {"lost_after": LOST_AFTER}})


def keep_up(scene: Scene) -> bool:
    """Whether the canaries of all nodes come back soon."""
    found = delays(scene)
    return set(found) == HOSTS and max(found.values()) < USUAL


def repair_one(scene: Scene) -> Place:
    """A row whose second write is lost, once it is repaired and verified."""
    place = Place()
    scene.write_truth(place, cells())
    until("a missing row is repaired", partial(scene.agrees, place))
    scene.await_verified(place.row)
    return place


def test_mail_and_our_own_tables_have_three_copies(live: Scene) -> None:
    for keyspace in (live.keyspace, live.own):
        assert replication_of(live.session, keyspace)["replication_factor"] == "3"


def test_canaries_of_all_nodes_come_back_and_a_missing_row_is_repaired(live: Scene) -> None:
    until("canaries of all nodes come back", partial(keep_up, live))
    repair_one(live)


def test_with_one_node_down_a_missing_row_is_repaired(live: Scene, own_stack: Stack) -> None:
    own_stack.nodes[2].kill()
    repair_one(live)
    assert own_stack.missing() == ["cassandra of 127.0.0.3", "agent of 127.0.0.3"]


def test_when_the_node_is_back_its_canaries_are_too(live: Scene, own_stack: Stack) -> None:
    own_stack.nodes[2].start()
    until("canaries of all nodes come back", partial(keep_up, live))
    repair_one(live)
    assert live.metric("reconciler_losses_total") == 0


def test_a_node_that_lost_its_disks_is_replaced(live: Scene, own_stack: Stack) -> None:
    node = own_stack.nodes[1]
    before = node.host_id()
    node.replace()
    assert node.host_id() == before
    repair_one(live)
    until("canaries of all nodes come back", partial(keep_up, live))
