"""Kafka, Cassandra or the agent gone in the middle: the stream goes on by itself, nothing is lost.

One stack and one stream of this file's own, which live through all of it.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from cassandra.cluster import NoHostAvailable, Session

from deploy.embedded import Stack
from tests.endpoints import Running
from tests.stack.scenes import Scene
from tests.stack.streams import until
from tests.stack.watched import SLOW, Restarted, Watched, watched

pytestmark = [pytest.mark.stack, pytest.mark.long(part="servers")]

SHORT, FULL = 5.0, 35.0
LONGER_THAN_THE_LEASE = LONGER_THAN_ITS_CLIENTS_WAIT = 75.0
SERVERS = {
    "agent": (Stack.kill_agent, Stack.start_agent),
    "kafka": (Stack.kill_kafka, Stack.start_kafka),
    "cassandra": (Stack.stop_cassandra, Stack.start_cassandra),
}
"""How each is ended, and started again."""


@pytest.fixture(scope="module")
def place(own_running: Running, own_session: Session) -> Iterator[Watched]:
    with watched(own_running.endpoints, own_session) as made:
        yield made


@pytest.fixture(scope="module")
def live(place: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarted]:
    """A stream that is never started again: what happens to it, it outlives."""
    made = place.stream(tmp_path_factory.mktemp("stream"))
    made.stream.start()
    made.plant()
    made.await_convergence()
    yield made
    assert made.stream.stop() == 0
    made.forget()


def outlives(
    live: Restarted, stop: Callable[[], None], start: Callable[[], None], seconds: float
) -> None:
    """Differences before, during and after; the stream repairs each once and stays alive."""
    live.plant()
    stop()
    gone_at = time.monotonic()
    if answers(live.place.session):
        live.plant()
    until("the outage lasts", lambda: time.monotonic() > gone_at + seconds)
    start()
    until("Cassandra answers", lambda: answers(live.place.session))
    live.plant()
    live.await_convergence()
    live.each_was_repaired_once()
    until("the stream shows it too", lambda: shown_open(live) == 0, SLOW)


def answers(session: Session) -> bool:
    try:
        session.execute("SELECT key FROM system.local")
    except (NoHostAvailable, OSError):
        return False
    return True


def shown_open(live: Restarted) -> float:
    """Open findings by the stream's own count."""
    place = live.place
    scene = Scene(place.session, place.stack, place.keyspace, live.own, live.stream)
    return scene.metric("reconciler_open_findings")


@pytest.mark.parametrize(
    ("server", "seconds"),
    [
        *((server, SHORT) for server in SERVERS),
        *((server, FULL) for server in SERVERS),
        ("cassandra", LONGER_THAN_THE_LEASE),
        ("kafka", LONGER_THAN_ITS_CLIENTS_WAIT),
    ],
)
def test_a_server_is_gone(live: Restarted, own_stack: Stack, server: str, seconds: float) -> None:
    stop, start = SERVERS[server]
    outlives(live, partial(stop, own_stack), partial(start, own_stack), seconds)
