"""`reconcile lwt-report` on two nodes, of which one is started again, and one goes away."""

from collections.abc import Iterator

import pytest
from cassandra import ConsistencyLevel, DriverException
from cassandra.cluster import NoHostAvailable, Session

from deploy.embedded import Stack
from deploy.embedded.node import StackNode
from reconcilers.lwt.placement import exactly
from streaming.settings import load
from tests.stack.reporting import Mail, mail, reporting
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="servers")]


@pytest.fixture(scope="module")
def plain(own_session: Session) -> Iterator[Mail]:
    with mail(own_session) as made:
        yield made


def test_a_node_that_is_started_again_counts_from_then_on(own_stack: Stack, plain: Mail) -> None:
    def work() -> None:
        plain.insert(*range(5))
        own_stack.stop_cassandra()
        own_stack.start_cassandra()
        until("the session is back", lambda: answers(plain))
        plain.read("imapuidtable", *range(3), level=ConsistencyLevel.SERIAL)

    with reporting(load(own_stack.config, {}).cassandra) as report:
        plain.insert(100, 101)  # before the interval
        cost = report(work)
    found = plain.of(cost, "imapuidtable")
    assert (found.changed, found.unchanged) == (exactly(0), exactly(3))
    assert cost.work.gaps == (
        "127.0.0.1 was started again: what it did before that is not counted",
    )


def test_two_nodes_are_added_and_one_that_goes_away_is_named(
    own_stack: Stack, plain: Mail, node: StackNode
) -> None:
    node.join()
    settings = load(own_stack.config, {}).cassandra
    places = (f"127.0.0.1:{settings.jmx_port}", f"127.0.0.1:{node.place.jmx}")
    with reporting(settings, places) as report:
        both = report(lambda: plain.insert(*range(200, 230)))
        assert both.work.nodes == both.work.told_lwt == {"127.0.0.1", node.place.host}
        assert plain.of(both, "imapuidtable").changed == exactly(30)
        one = report(node.kill)
    assert one.work.nodes == {"127.0.0.1"}
    assert any(gap.startswith(f"{node.place.host} is left out: ") for gap in one.work.gaps)


def answers(plain: Mail) -> bool:
    """Whether Cassandra serves the test's own session again."""
    try:
        plain.read("messageidtable", 0)
    except (DriverException, NoHostAvailable):
        return False
    return True
