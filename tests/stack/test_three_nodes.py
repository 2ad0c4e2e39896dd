"""Three nodes with a copy of each row on each; one is killed with its agent, and is back.

One stack and one stream of this file's own. The tests are steps, in this order.
"""

from collections.abc import Iterator
from functools import partial

import pytest

from deploy.embedded import Stack
from tests.sessions import replication_of
from tests.stack.conftest import Scenes
from tests.stack.counted import Counted
from tests.stack.scenes import Place, Scene
from tests.stack.streams import until
from tests.stack.three import (
    BEHIND,
    CHANGES,
    await_canaries,
    count_one,
    remove_one,
    repair_one,
)

pytestmark = pytest.mark.stack

DATA_CENTRES = (3,)


@pytest.fixture(scope="module")
def live(own_scenes: Scenes) -> Iterator[Scene]:
    yield from own_scenes(CHANGES)


def test_mail_and_our_own_tables_have_three_copies(live: Scene) -> None:
    for keyspace in (live.keyspace, live.own):
        assert replication_of(live.session, keyspace)["replication_factor"] == "3"


def test_rows_are_added_and_removed_and_counters_corrected(live: Scene) -> None:
    await_canaries(live)
    repair_one(live)
    remove_one(live)
    count_one(live)


def test_with_one_node_down_rows_are_added_and_the_rest_waits(
    live: Scene, own_stack: Stack
) -> None:
    """At QUORUM all reads and writes go on; but what that node's agent has not sent may matter."""
    own_stack.nodes[2].kill()
    repair_one(live)
    left, box = Place(), Counted(live).create().hold(seen=1, unseen=1)
    live.leave_behind(left)
    until("a removal says why it waits", partial(live.is_held, left.row, BEHIND))
    repair_one(live)
    assert not live.lacks(left.row)
    assert box.counters() is None
    assert own_stack.missing() == ["cassandra of 127.0.0.3", "agent of 127.0.0.3"]
    own_stack.nodes[2].start()
    await_canaries(live)
    until("it is removed", partial(live.lacks, left.row))
    box.await_counters((2, 1))
    assert live.metric("reconciler_losses_total") == 0
