"""How far the nodes' clocks are ahead, as real servers tell it."""

from deploy.embedded.wait import HANG_S
from streaming.settings import load
from streaming.tables import Nodes, connect
from tests.endpoints import Endpoints


def test_each_node_tells_its_clock(stack: Endpoints) -> None:
    nodes = Nodes(connect(load(stack.config, {}).cassandra))
    ahead = nodes.clocks()
    assert ahead.keys() == nodes.members()
    assert all(abs(each) < HANG_S for each in ahead.values())
