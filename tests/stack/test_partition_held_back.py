"""A partition of the agent's topic takes no writes: events wait in the agent, others pass.

Its canaries wait with its events, so nothing is judged on what has not come. A stack of this file's
own, with two brokers.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, KafkaAdminClient

from deploy.embedded import Stack
from deploy.embedded.second_broker import FIRST, SECOND, SecondBroker, in_sync, keep_at
from streaming.topics.lanes import partition_of
from tests.stack.conftest import LATEST, TALLIES, Scenes
from tests.stack.counted import Counted
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="capture")]

OPEN, HELD = 0, 1
"""The topic's partitions: the second has its replica on the second broker."""
PASSES = 60.0
"""Seconds in which only the first takes writes: a counter would long be corrected."""


@pytest.fixture(scope="module")
def live(own_scenes: Scenes) -> Iterator[Scene]:
    for made in own_scenes({"stream": {"delay": LATEST}, "tally": TALLIES}):
        until("canaries come back", partial(_frontier, made))
        yield made


@pytest.fixture(scope="module")
def second(
    live: Scene, own_stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecondBroker]:
    """It comes when all topics are there: it gets none but what it is given."""
    broker = SecondBroker(own_stack, tmp_path_factory.mktemp("second"))
    broker.launch()
    try:
        keep_at(own_stack, [_partition(own_stack)], (FIRST, SECOND))
        _demand_both(own_stack)
        yield broker
    finally:
        broker.kill()


def _partition(stack: Stack) -> TopicPartition:
    return TopicPartition(stack.topic_prefix, HELD)


def _demand_both(stack: Stack) -> None:
    """The partition takes writes on both brokers only; those with one copy need no more than it."""
    admin = KafkaAdminClient(bootstrap_servers=stack.bootstrap_servers)
    try:
        held = ConfigResource("TOPIC", stack.topic_prefix, {"min.insync.replicas": "2"})
        admin.alter_configs([held])
    finally:
        admin.close()


def _frontier(scene: Scene) -> float:
    return scene.metric("reconciler_frontier_timestamp_seconds")


def _place_in(partition: int, **ids: Any) -> Place:
    """A message whose event of the truth goes to this partition."""
    while True:
        place = Place(**ids)
        if partition_of(place.event_key, 2) == partition:
            return place


def test_nothing_is_judged_past_a_partition_that_takes_no_writes(
    live: Scene, own_stack: Stack, second: SecondBroker
) -> None:
    box, wrong = Counted(live).create(), Counted(live).create().hold(seen=1, unseen=1)
    for uid in (1, 2):
        box.places.append(_place_in(OPEN, mailboxid=box.mailboxid, uid=uid))
        live.write_both(box.places[-1], cells())
    box.add(2, 2)
    until("counters are judged", lambda: wrong.counters() == (2, 1))
    second.kill()
    until("it is known to be away", lambda: in_sync(own_stack, _partition(own_stack)) == {FIRST})
    held, stood = _place_in(HELD, mailboxid=box.mailboxid, uid=3), time.time()
    live.write_truth(held, cells())  # and the mail server has yet to count it
    while time.time() - stood < PASSES:
        passes = _place_in(OPEN)
        live.write_truth(passes, cells())
        box.touch()
        until("an event of the other partition is looked at", partial(live.agrees, passes))
    assert _frontier(live) < stood
    assert live.lacks(held.row)
    assert box.counters() == (2, 2)
    box.add(1, 1)
    second.launch()
    back = time.time()
    until("what was held back is repaired", lambda: live.agrees(held))
    until("the frontier goes on", lambda: _frontier(live) > back)
    live.await_all_examined()
    assert box.counters() == (3, 3)
    assert not box.findings()
    assert live.metric("reconciler_losses_total") == 0
