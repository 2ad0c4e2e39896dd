"""Lanes: one key for each partition, as Kafka's own producers send them."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from reconcilers.errors import Unreachable
from streaming.topics.lanes import PARTITIONS_EVERY, Lanes, lanes_of, partition_of


def partitions_of(place: str, lanes: tuple[int, ...], partitions: int) -> list[int]:
    keys = [f'{{"place":"{place}","lane":{lane}}}'.encode() for lane in lanes]
    assert [json.loads(key)["lane"] for key in keys] == list(lanes)
    return [partition_of(key, partitions) for key in keys]


@pytest.mark.parametrize(
    ("key", "partition"), [(b"21", 1), (b"foobar", 5), (b"a-little-bit-long-string", 6)]
)
def test_a_key_goes_where_kafkas_producer_sends_it(key: bytes, partition: int) -> None:
    """The numbers of Kafka's own tests of murmur2: -973932308, -790332482, -985981536."""
    hashed = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    assert partition_of(key, 7) == (hashed[key] & 0x7FFFFFFF) % 7


@pytest.mark.parametrize("partitions", [1, 2, 12, 64])
def test_each_partition_has_one_lane_in_their_order(partitions: int) -> None:
    lanes = lanes_of("node/3", partitions)
    assert partitions_of("node/3", lanes, partitions) == list(range(partitions))


class Watcher:
    """Tells how many partitions the topic has; each answer is counted."""

    def __init__(self, partitions: int) -> None:
        self.count, self.asked, self.away = partitions, 0, False

    def missing(self, topics: list[str]) -> list[str]:
        self.asked += 1
        if self.away:
            raise Unreachable("no broker")
        return []

    def partitions(self, topic: str) -> list[int]:
        return list(range(self.count))


def test_partitions_that_are_added_get_lanes_after_a_while() -> None:
    watcher, now = Watcher(1), [0.0]
    lanes = Lanes(cast(Any, watcher), "james", lambda: now[0])
    assert len(lanes.of("node/0")) == 1
    watcher.count = 4
    assert len(lanes.of("node/0")) == 1
    assert watcher.asked == 1
    now[0] += PARTITIONS_EVERY + 1
    assert len(lanes.of("node/0")) == 4


def test_without_partitions_no_canary_is_written_and_they_are_asked_for_again() -> None:
    """One that was acknowledged and went nowhere would look like a loss."""
    watcher = Watcher(0)
    lanes = Lanes(cast(Any, watcher), "james", lambda: 0.0)
    with pytest.raises(Unreachable, match="no partitions of james"):
        lanes.of("node/0")
    watcher.count = 2
    assert len(lanes.of("node/0")) == 2


def test_while_kafka_is_away_canaries_go_on_in_the_lanes_that_are_known() -> None:
    watcher, now = Watcher(2), [0.0]
    lanes = Lanes(cast(Any, watcher), "james", lambda: now[0])
    known = lanes.of("node/0")
    watcher.away = True
    now[0] += PARTITIONS_EVERY + 1
    assert lanes.of("node/0") == known
