"""Two data centres, two nodes and one: James at QUORUM and SERIAL, then at the local levels.

One stack of this file's own, and a stream for each pair of levels.
"""

from collections.abc import Iterator

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT

from deploy.embedded import Stack
from tests.sessions import replication_of
from tests.stack.conftest import Scenes
from tests.stack.scenes import Scene
from tests.stack.three import (
    CHANGES,
    await_canaries,
    count_one,
    remove_one,
    repair_one,
)

pytestmark = [pytest.mark.stack, pytest.mark.long(part="copies")]

DATA_CENTRES = (2, 1)
LEVELS = [("QUORUM", "SERIAL"), ("LOCAL_QUORUM", "LOCAL_SERIAL")]


@pytest.fixture(scope="module", params=LEVELS, ids=" and ".join)
def live(request: pytest.FixtureRequest, own_scenes: Scenes) -> Iterator[Scene]:
    """James writes in the first data centre, at the level of our reads."""
    level, serial = request.param
    profile = own_scenes.session.cluster.profile_manager.profiles[EXEC_PROFILE_DEFAULT]
    profile.consistency_level = ConsistencyLevel.name_to_value[level]
    own = {"local_dc": "dc1", "consistency": level, "serial_consistency": serial}
    yield from own_scenes({**CHANGES, "cassandra": own})


def test_copies_are_in_both(live: Scene) -> None:
    for keyspace in (live.keyspace, live.own):
        found = replication_of(live.session, keyspace)
        assert (found["dc1"], found["dc2"]) == ("2", "1")


def test_rows_are_added_and_removed_and_counters_corrected(live: Scene) -> None:
    await_canaries(live)
    repair_one(live)
    remove_one(live)
    count_one(live)


def test_rows_are_added_while_the_other_data_centre_is_away(live: Scene, own_stack: Stack) -> None:
    other = own_stack.nodes[2]
    other.kill()
    repair_one(live)
    other.start()
    await_canaries(live)
    remove_one(live)
    count_one(live)
    assert live.metric("reconciler_losses_total") == 0
