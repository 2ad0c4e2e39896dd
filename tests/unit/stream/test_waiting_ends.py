"""PartitionEnds of topics that wait for the delay, for families without a query of Spark."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from checkpoints.bookmarks import Offsets
from reconcilers.words.errors import Unreachable
from streaming.pipeline.slices import Closed
from streaming.pipeline.waiting_ends import PartitionEnds, WaitingEnds

DELAY, EVERY = 10.0, 4.0
PLACE = ("agents", 0)


@dataclass
class Kafka:
    """One partition that grows by one record a second; a call takes ``takes`` seconds."""

    now: float = 0.0
    takes: float = 0.0
    silent: bool = False
    asked: list[float] = field(default_factory=list)

    def read(self) -> Offsets:
        self.asked.append(self.now)
        if self.silent:
            raise Unreachable("no broker answered")
        end = int(self.now)
        self.now += self.takes
        return {PLACE[0]: {PLACE[1]: end}}


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.fixture
def ends(kafka: Kafka) -> WaitingEnds:
    return WaitingEnds(kafka.read, DELAY, EVERY, lambda: kafka.now)


def end_of(found: PartitionEnds | None) -> int | None:
    return None if found is None else found.offsets[PLACE[0]][PLACE[1]]


def after(kafka: Kafka, ends: WaitingEnds, until: float, since: float = -1.0) -> int | None:
    """What has waited at ``until``, if it is asked once a second."""
    found = None
    while kafka.now <= until:
        found = end_of(ends.waited(since))
        kafka.now += 1
    return found


def test_no_record_comes_out_before_it_has_waited(kafka: Kafka, ends: WaitingEnds) -> None:
    kafka.now = 100.0
    for second in range(100, 200):
        kafka.now = float(second)
        found = end_of(ends.waited(-1.0))
        assert (found is None) == (second < 100 + DELAY)
        if found is not None:
            assert found <= second - DELAY, "the record before this end came a second earlier"
            assert found > second - DELAY - EVERY


def test_the_delay_begins_when_kafka_has_answered(kafka: Kafka, ends: WaitingEnds) -> None:
    kafka.takes = 3.0
    assert ends.waited(-1.0) is None
    kafka.takes, kafka.now = 0.0, DELAY + 2.9
    assert ends.waited(-1.0) is None
    kafka.now = DELAY + 3.0
    assert end_of(ends.waited(-1.0)) == 0


def test_kafka_is_asked_once_a_window_however_many_families_ask(
    kafka: Kafka, ends: WaitingEnds
) -> None:
    for _ in range(40):
        found = [ends.waited(-1.0) for _family in range(5)]
        assert all(each is found[0] for each in found), "all look at the same ranges"
        kafka.now += 1
    assert kafka.asked == [float(second) for second in range(0, 40, int(EVERY))]


def test_ends_from_before_a_family_began_are_not_its_own(kafka: Kafka, ends: WaitingEnds) -> None:
    """Its topic may have been made again since, with fewer records."""
    assert after(kafka, ends, 20) is not None
    began = kafka.now
    assert after(kafka, ends, began + DELAY, began) is None
    assert after(kafka, ends, began + DELAY + EVERY, began) is not None


def test_what_waits_is_not_lost_while_kafka_does_not_answer(
    kafka: Kafka, ends: WaitingEnds
) -> None:
    kafka.now = 50.0
    assert ends.waited(-1.0) is None
    kafka.silent, kafka.now = True, 100.0
    with pytest.raises(Unreachable):
        ends.waited(-1.0)
    kafka.silent = False
    assert end_of(ends.waited(-1.0)) == 50


def test_a_call_that_fails_is_not_made_again_by_each_family(
    kafka: Kafka, ends: WaitingEnds
) -> None:
    """It takes half a minute, during which none of them can stop."""
    kafka.silent = True
    with pytest.raises(Unreachable):
        ends.waited(-1.0)
    assert [ends.waited(-1.0) for _family in range(4)] == [None] * 4
    assert len(kafka.asked) == 1


def test_ends_that_were_asked_for_before_a_family_began_came_too_late(
    kafka: Kafka, ends: WaitingEnds
) -> None:
    kafka.takes = 3.0
    ends.waited(-1.0)
    kafka.takes, kafka.now = 0.0, 3.0 + DELAY
    assert ends.waited(since=1.0) is None


def test_all_before_the_ends_has_closed_at_the_time_at_which_they_were_asked_for() -> None:
    found = PartitionEnds(7_000, 0.0, 0.0, {"agents": {0: 5, 1: 0}})
    assert found.windows() == [
        Closed(7_000, ("agents", 0), 5),
        Closed(7_000, ("agents", 1), 0),
        Closed(7_000),
    ]
