"""Kafka, Cassandra or the agent gone in the middle: the stream goes on by itself, nothing is lost.

One stack and one stream of this file's own, which live through all of it.
"""

import time
from collections.abc import Callable, Iterator

import pytest
from cassandra.cluster import NoHostAvailable, Session

from deploy import captured
from deploy.embedded import Stack, Wanted
from tests.endpoints import Endpoints
from tests.stack.reconnecting import reconnecting
from tests.stack.scenes import Scene
from tests.stack.streams import until
from tests.stack.watched import SLOW, Restarted, Watched, watched

pytestmark = [pytest.mark.stack, pytest.mark.long(part="servers")]

SHORT, FULL = 5.0, 35.0
LONGER_THAN_THE_LEASE = 75.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(
        tmp_path_factory.mktemp("outages"), Wanted(tables=captured.TABLES, schema=captured.SCHEMA)
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


def test_the_agent_is_gone(live: Restarted, stack: Stack) -> None:
    outlives(live, stack.kill_agent, stack.start_agent, SHORT)


def test_kafka_is_gone(live: Restarted, stack: Stack) -> None:
    outlives(live, stack.kill_kafka, stack.start_kafka, SHORT)


def test_cassandra_is_gone(live: Restarted, stack: Stack) -> None:
    outlives(live, stack.stop_cassandra, stack.start_cassandra, SHORT)


def test_the_agent_is_gone_for_half_a_minute(live: Restarted, stack: Stack) -> None:
    outlives(live, stack.kill_agent, stack.start_agent, FULL)


def test_kafka_is_gone_for_half_a_minute(live: Restarted, stack: Stack) -> None:
    outlives(live, stack.kill_kafka, stack.start_kafka, FULL)


def test_cassandra_is_gone_for_half_a_minute(live: Restarted, stack: Stack) -> None:
    outlives(live, stack.stop_cassandra, stack.start_cassandra, FULL)


def test_cassandra_is_gone_for_longer_than_the_lease(live: Restarted, stack: Stack) -> None:
    outlives(live, stack.stop_cassandra, stack.start_cassandra, LONGER_THAN_THE_LEASE)


def test_kafka_is_gone_for_longer_than_its_clients_wait(live: Restarted, stack: Stack) -> None:
    outlives(live, stack.kill_kafka, stack.start_kafka, LONGER_THAN_THE_LEASE)
