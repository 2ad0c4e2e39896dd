"""Lanes: one key for each partition, as Kafka's own producers send them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.words.errors import Unreachable
from streaming.topics.lanes import (
    KNOWN_AFTER,
    PARTITIONS_EVERY,
    Lanes,
    came_astray,
    lanes_of,
    leads_to,
    newest_lanes,
    partition_of,
    with_lanes_for,
)


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
    keys = [f'{{"place":"node/3","lane":{lane}}}'.encode() for lane in lanes]
    assert [json.loads(key)["lane"] for key in keys] == list(lanes)
    assert [partition_of(key, partitions) for key in keys] == list(range(partitions))


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
    assert len(lanes.of("node/0", ())) == 1
    watcher.count = 4
    assert len(lanes.of("node/0", ())) == 1
    assert watcher.asked == 1
    now[0] += PARTITIONS_EVERY + 1
    assert len(lanes.of("node/0", ())) == 4


def test_without_partitions_no_canary_is_written_and_they_are_asked_for_again() -> None:
    """One that was acknowledged and went nowhere would look like a loss."""
    watcher = Watcher(0)
    lanes = Lanes(cast(Any, watcher), "james", lambda: 0.0)
    with pytest.raises(Unreachable, match="no partitions of james"):
        lanes.of("node/0", ())
    watcher.count = 2
    assert len(lanes.of("node/0", ())) == 2


def test_while_kafka_is_away_canaries_go_on_in_the_lanes_that_are_known() -> None:
    watcher, now = Watcher(2), [0.0]
    lanes = Lanes(cast(Any, watcher), "james", lambda: now[0])
    known = lanes.of("node/0", ())
    watcher.away = True
    now[0] += PARTITIONS_EVERY + 1
    assert lanes.of("node/0", ()) == known


# --- partitions are added -------------------------------------------------------------------------

PLACE = "67ec7cde-2451-4959-9d50-fcdd03c3e923/0"
PLACES = st.builds(
    lambda number, of: f"{uuid.UUID(int=number)}/{of}", st.integers(0, 2**128 - 1), st.just(0)
)
COUNTS = st.integers(1, 30)


def covered(place: str, lanes: Iterable[int], partitions: int) -> set[int]:
    return {leads_to(place, lane, partitions) for lane in lanes}


def test_lanes_for_seven_partitions_need_not_lead_to_each_of_five() -> None:
    assert covered(PLACE, lanes_of(PLACE, 7), 5) == {0, 1, 2, 4}
    both = with_lanes_for(PLACE, 7, lanes_of(PLACE, 5))
    assert covered(PLACE, both, 5) == {*range(5)}
    assert covered(PLACE, both, 7) == {*range(7)}


@given(PLACES, COUNTS, COUNTS, st.integers(0, 60))
def test_whenever_a_producer_learns_of_partitions_each_old_one_gets_a_lane(
    place: str, old: int, added: int, learns: int
) -> None:
    """It sends the lanes up to that moment as to the old number, the others as to the new one."""
    new = old + added
    lanes = with_lanes_for(place, new, lanes_of(place, old))
    before, after = lanes[:learns], lanes[learns:]
    assert covered(place, before, old) | covered(place, after, new) >= {*range(old)}
    assert covered(place, lanes, new) == {*range(new)}
    newest = newest_lanes(place, new, lanes)
    assert covered(place, newest, new) == {*range(new)}
    assert len(newest) == new


def test_lanes_in_use_stay_until_every_producer_knows_of_the_new_partitions() -> None:
    watcher, now = Watcher(5), [0.0]
    lanes = Lanes(cast(Any, watcher), "james", lambda: now[0])
    old = lanes.of(PLACE, ())
    watcher.count = 7
    now[0] += PARTITIONS_EVERY + 1
    both = lanes.of(PLACE, old)
    assert both[:5] == tuple(sorted(old))
    assert lanes.partitions == 7
    now[0] += KNOWN_AFTER
    assert lanes.of(PLACE, both) == both
    now[0] += 1
    assert lanes.of(PLACE, both) == tuple(sorted(both[5:]))


def test_a_process_that_begins_goes_on_in_the_lanes_of_the_one_before() -> None:
    """Partitions may have been added while none ran."""
    watcher, now = Watcher(7), [0.0]
    old = lanes_of(PLACE, 5)
    both = Lanes(cast(Any, watcher), "james", lambda: now[0]).of(PLACE, old)
    assert both == with_lanes_for(PLACE, 7, old)
    assert Lanes(cast(Any, watcher), "james", lambda: now[0]).of(PLACE, both) == both


def test_a_canary_that_came_by_the_old_number_came_astray() -> None:
    lane = next(each for each in lanes_of(PLACE, 7) if leads_to(PLACE, each, 7) >= 5)
    assert came_astray(PLACE, lane, 7, leads_to(PLACE, lane, 5)) == 7
    assert came_astray(PLACE, lane, 7, leads_to(PLACE, lane, 7)) == 0
    assert came_astray(PLACE, lane, 0, 3) == 0
