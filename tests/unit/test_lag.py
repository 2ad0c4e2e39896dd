"""Kafka lag in seconds: how long ago a topic had reached an end that is not read yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.errors import Unreachable
from streaming.monitoring import lag
from streaming.monitoring.lag import LagWatch
from streaming.monitoring.metrics import Metrics

TOPIC = "james.apache_james.imapuidtable"


class Kafka:
    """One topic; ``ends`` are its partitions' ends, None when no broker answers."""

    def __init__(self) -> None:
        self.ends: dict[int, int] | None = {0: 0}
        self.now = 1_000.0
        self.metrics = Metrics(CollectorRegistry())
        self.watch = LagWatch(self, (TOPIC,), self.metrics)

    def end_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        if self.ends is None:
            raise Unreachable("no broker answered")
        return {topic: dict(self.ends) for topic in topics}

    def measure(self, *read: int) -> float:
        return self.watch.measure({TOPIC: dict(enumerate(read))})

    def shown(self, metric: str, partition: int = 0) -> float | None:
        labels = {"topic": TOPIC, "partition": str(partition)}
        return self.metrics.registry.get_sample_value(f"reconciler_kafka_lag_{metric}", labels)


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    made = Kafka()
    with patch.object(lag, "time", SimpleNamespace(monotonic=lambda: made.now)):
        yield made


def test_what_is_read_to_its_end_has_no_lag(kafka: Kafka) -> None:
    kafka.ends = {0: 7}
    assert kafka.measure(7) == 0
    assert (kafka.shown("records"), kafka.shown("seconds")) == (0, 0)


def test_under_steady_traffic_the_lag_does_not_grow(kafka: Kafka) -> None:
    """The stream reads what was there five seconds ago, always."""
    told = []
    for second in range(0, 600, 5):
        kafka.now, kafka.ends = 1_000.0 + second, {0: second * 10}
        told.append(kafka.measure(max(second - 5, 0) * 10))
    assert max(told) <= 5


def test_a_stream_that_stands_still_falls_behind_by_the_second(kafka: Kafka) -> None:
    kafka.measure(0)
    for second in range(0, 60, 5):
        kafka.now, kafka.ends = 1_000.0 + second, {0: 10 + second}
        assert kafka.measure(0) == second
    assert kafka.shown("records") == 65


def test_a_stream_that_catches_up_is_as_late_as_the_oldest_record_it_has_not_read(
    kafka: Kafka,
) -> None:
    for second, end in ((0, 10), (10, 20), (20, 30)):
        kafka.now, kafka.ends = 1_000.0 + second, {0: end}
        kafka.measure(0)
    assert kafka.measure(10) == 10
    assert kafka.measure(29) == 0
    assert kafka.measure(30) == 0


def test_of_several_partitions_the_latest_one_counts(kafka: Kafka) -> None:
    kafka.ends = {0: 5, 1: 5}
    kafka.measure(5, 0)
    kafka.now += 30
    assert kafka.measure(5, 0) == 30
    assert (kafka.shown("seconds", 0), kafka.shown("seconds", 1)) == (0, 30)


def test_before_the_first_batch_nothing_counts_as_read(kafka: Kafka) -> None:
    kafka.ends = {0: 5}
    kafka.watch.measure({})
    kafka.now += 3
    assert kafka.watch.measure({}) == 3
    assert kafka.shown("records") == 5


def test_while_no_broker_answers_the_lag_goes_on_and_what_is_shown_stands(kafka: Kafka) -> None:
    kafka.ends = {0: 5}
    kafka.measure(0)
    kafka.now, kafka.ends = kafka.now + 20, None
    assert kafka.measure(0) == 20
    assert kafka.shown("records") == 5


def test_a_fresh_start_further_back_is_behind_again(kafka: Kafka) -> None:
    kafka.ends = {0: 50}
    kafka.measure(50)
    kafka.now += 10
    assert kafka.measure(10) == 0
    kafka.now += 10
    assert kafka.measure(10) == 10
