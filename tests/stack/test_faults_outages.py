"""Kafka, Cassandra or the agent gone in the middle: the stream goes on by itself, nothing is lost.

One stack and one stream of this file's own, which live through all of it.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from cassandra.cluster import NoHostAvailable, Session

from deploy import wake_tables
from deploy.embedded import Stack, Wanted
from tests.endpoints import Endpoints
from tests.stack.reconnecting import reconnecting
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
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(
        tmp_path_factory.mktemp("outages"),
        Wanted(tables=wake_tables.TABLES, schema=wake_tables.SCHEMA),
    ) as started:
        yield started


@pytest.fixture(scope="module")
def session(stack: Stack) -> Iterator[Session]:
    with reconnecting(stack) as made:
        yield made


@pytest.fixture(scope="module")
def place(stack: Stack, session: Session) -> Iterator[Watched]:
    with watched(Endpoints.of(stack.describe()), session) as made:
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
def test_a_server_is_gone(live: Restarted, stack: Stack, server: str, seconds: float) -> None:
    stop, start = SERVERS[server]
    outlives(live, partial(stop, stack), partial(start, stack), seconds)
