"""Three nodes: undo, replay and sweep; nodes restarted, late, repaired by nodetool, and replaced.

One stack and one stream of this file's own. The tests are steps, in this order.
"""

from collections.abc import Iterator
from functools import partial

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import NoHostAvailable
from cassandra.query import SimpleStatement

from deploy.embedded import Stack
from tests.sessions import session_at
from tests.stack.conftest import Scenes
from tests.stack.pasts import lose, newest_bookmark
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until
from tests.stack.three import (
    CHANGES,
    await_canaries,
    count_one,
    remove_one,
    repair_one,
)

pytestmark = [pytest.mark.stack, pytest.mark.long(part="copies")]

DATA_CENTRES = (3,)
WHO = ("--who", "ana", "--reason", "a test")


@pytest.fixture(scope="module")
def live(own_scenes: Scenes) -> Iterator[Scene]:
    yield from own_scenes(CHANGES)


def all_is_well(scene: Scene) -> None:
    """Rows are added and removed, counters corrected, and no event was lost."""
    await_canaries(scene)
    repair_one(scene)
    remove_one(scene)
    count_one(scene)
    assert scene.metric("reconciler_losses_total") == 0


def answers(scene: Scene) -> bool:
    """Whether the node that tests speak with does."""
    try:
        scene.execute("SELECT key FROM system.local")
    except NoHostAvailable:
        return False
    return True


def test_a_repair_is_undone(live: Scene) -> None:
    place = repair_one(live)
    key = f"{place.mailboxid}/{place.uid}"
    live.succeed("findings", "--undo", key, "--system", "messages", *WHO)
    until("the row is gone again", partial(live.lacks, place.row))
    held = partial(live.is_held, place.row, "on hold by ana")
    until("it is held", held)


def test_what_the_stream_passed_over_is_found_by_a_replay_and_by_a_sweep(live: Scene) -> None:
    until("something is settled", partial(newest_bookmark, live))
    live.succeed("bookmark", "before")
    for command in (("replay", "--bookmark", "before"), ("sweep", "--reason", "a test")):
        place = Place()
        live.write_both(place, cells())
        live.await_all_examined()
        lose(live, place)
        live.stream.start_watching()
        assert not live.agrees(place)
        live.succeed(*command)
        until(f"{command[0]} has it repaired", partial(live.agrees, place))


def test_nodes_are_restarted_one_by_one(live: Scene, own_stack: Stack) -> None:
    for node in own_stack.nodes[1:]:
        node.stop()
        repair_one(live)
        node.start()
        await_canaries(live)
    first, place = own_stack.nodes[0], Place()  # tests speak with the first only
    live.write_truth(place, cells())
    first.stop()
    first.start()
    until("tests can speak with it again", partial(answers, live))
    until("a row lost before is repaired", partial(live.agrees, place))
    all_is_well(live)


def test_a_copy_that_missed_writes_makes_no_finding(live: Scene, own_stack: Stack) -> None:
    *others, late = own_stack.nodes
    for each in others:
        each.cassandra.nodetool("disablehandoff")
    late.kill()
    places = [Place() for _ in range(20)]
    examined = partial(live.metric, "reconciler_keys_examined_total")
    before = examined()
    for place in places:
        live.write_both(place, cells())
    # a look by quorum would repair the copy that is back
    until("all are looked at without it", lambda: examined() >= before + len(places))
    late.start()
    for each in others:
        each.cassandra.nodetool("enablehandoff")
    assert not any(has_truth(own_stack, live, place) for place in places)
    for place in places:
        live.write_truth(place, {"modseq": 7})
    live.await_all_examined()
    assert not any(live.findings(place.row) for place in places)
    all_is_well(live)


def has_truth(stack: Stack, scene: Scene, place: Place) -> bool:
    """Whether the last node alone has a message's row."""
    cql = f"SELECT modseq FROM {scene.keyspace}.imapuidtable WHERE messageid = %s"
    asked = SimpleStatement(cql, consistency_level=ConsistencyLevel.ONE)
    with session_at(stack.nodes[-1].place.host, stack.cassandra_port) as session:
        return session.execute(asked, (place.messageid,)).one() is not None


def test_rows_are_repaired_while_nodetool_repairs(live: Scene, own_stack: Stack) -> None:
    missing, left = Place(), Place()
    live.write_truth(missing, cells())
    live.leave_behind(left)
    for node in own_stack.nodes:
        node.cassandra.nodetool("repair", "--full", live.keyspace)
    until("a missing row is repaired", partial(live.agrees, missing))
    until("a row left behind is removed", partial(live.lacks, left.row))
    all_is_well(live)


def test_a_node_that_lost_its_disks_is_replaced(live: Scene, own_stack: Stack) -> None:
    node = own_stack.nodes[1]
    before = node.host_id()
    node.replace()
    assert node.host_id() == before
    repair_one(live)
    await_canaries(live)
