"""Kafka lag in seconds: the age of the oldest record that is not read yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import Place
from checkpoints.clock import to_micros
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Micros
from streaming.monitoring.lag import LagWatch, PartitionLag, lags, longest
from streaming.monitoring.metrics import Metrics

TOPIC = "james.apache_james.imapuidtable"
BEGAN = 1_000


class Kafka:
    """One topic, of which a record is written each second in each partition, from offset 0 on."""

    def __init__(self) -> None:
        self.now = float(BEGAN)
        self.partitions = [0]
        self.answers = self.tells_ages = True
        self.kept, self.retention_asked = "604800000", 0
        self.asked: list[Mapping[Place, int]] = []
        self.metrics = Metrics(CollectorRegistry())
        self.watch = LagWatch(self, (TOPIC,), self.metrics, lambda: to_micros(self.now))

    def end_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        if not self.answers:
            raise Unreachable("no broker answered")
        end = int(self.now) - BEGAN + 1
        return {topic: dict.fromkeys(self.partitions, end) for topic in topics}

    def written_at(self, places: Mapping[Place, int]) -> dict[Place, Micros]:
        self.asked.append(places)
        if not self.tells_ages:
            return {}
        return {place: to_micros(BEGAN + offset) for place, offset in places.items()}

    def configured(self, topics: Iterable[str], name: str) -> dict[str, str]:
        assert name == "retention.ms"
        if not self.answers:
            raise Unreachable("no broker answered")
        self.retention_asked += 1
        return {topic: self.kept for topic in topics if self.kept}

    def measure(self, *read: int) -> float | None:
        """The lag of the first partition, as it is shown then."""
        self.watch.measure({TOPIC: dict(enumerate(read))})
        return self.shown("seconds")

    def shown(self, metric: str, partition: int = 0) -> float | None:
        labels = {"topic": TOPIC, "partition": str(partition)}
        return self.metrics.registry.get_sample_value(f"reconciler_kafka_lag_{metric}", labels)


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.mark.parametrize(
    ("passed", "read", "seconds", "records"),
    [(0, 1, 0, 0), (600, 200, 400, 401), (3_600, 0, 3_600, 3_601)],
    ids=["read to its end", "behind", "just begun: as late as one that runs"],
)
def test_the_lag_is_the_age_of_the_first_record_that_is_not_read(
    kafka: Kafka, passed: int, read: int, seconds: int, records: int
) -> None:
    """It is not counted from when this process first saw an end."""
    kafka.now += passed
    assert kafka.measure(read) == seconds
    assert (kafka.shown("records"), kafka.shown("seconds")) == (records, seconds)
    assert len(kafka.asked) == bool(records)


def test_where_nobody_knows_what_is_read_no_number_is_shown(kafka: Kafka) -> None:
    kafka.now += 60
    assert kafka.measure() is None
    assert (kafka.shown("records"), kafka.shown("seconds")) == (None, None)


def test_where_the_age_is_not_told_no_older_number_is_left(kafka: Kafka) -> None:
    kafka.now += 60
    kafka.measure(10)
    kafka.tells_ages = False
    assert kafka.measure(10) is None
    assert (kafka.shown("records"), kafka.shown("seconds")) == (51, None)


def test_each_partition_has_its_own(kafka: Kafka) -> None:
    kafka.partitions = [0, 1]
    kafka.now += 30
    kafka.measure(31, 5)
    assert (kafka.shown("seconds", 0), kafka.shown("seconds", 1)) == (0, 25)


def test_while_no_broker_answers_what_was_unread_grows_older(kafka: Kafka) -> None:
    kafka.now += 10
    kafka.measure(5)
    kafka.now, kafka.answers = kafka.now + 20, False
    assert kafka.measure(5) == 25
    assert (kafka.shown("records"), kafka.shown("seconds")) == (6, 25)


def test_a_fresh_start_further_back_is_behind_again(kafka: Kafka) -> None:
    kafka.now += 50
    assert kafka.measure(51) == 0
    assert kafka.measure(10) == 40


# --- how long records are kept


def retention(kafka: Kafka) -> float | None:
    labels = {"topic": TOPIC}
    return kafka.metrics.registry.get_sample_value("reconciler_kafka_retention_seconds", labels)


@pytest.mark.parametrize("kept", ["-1", ""], ids=["for ever", "not known"])
def test_how_long_a_topic_keeps_records_is_shown_if_it_drops_them(kafka: Kafka, kept: str) -> None:
    kafka.measure(1)
    assert retention(kafka) == 7 * 86_400
    kafka.kept, kafka.now = kept, kafka.now + 601
    kafka.measure(1)
    assert retention(kafka) is None


def test_it_is_asked_every_ten_minutes_only(kafka: Kafka) -> None:
    for _ in range(120):
        kafka.measure(1)
        kafka.now += 5
    assert kafka.retention_asked == 1
    kafka.now += 10
    kafka.measure(1)
    assert kafka.retention_asked == 2


def test_without_a_broker_the_last_answer_stays(kafka: Kafka) -> None:
    kafka.measure(1)
    kafka.answers, kafka.now = False, kafka.now + 601
    kafka.measure(1)
    assert retention(kafka) == 7 * 86_400


# --- what metric and command both ask for


def test_of_each_partition_it_is_known_how_much_waits(kafka: Kafka) -> None:
    kafka.partitions, kafka.now = [0, 1, 2], BEGAN + 8.0
    found = lags(kafka, ["b", "a"], {"a": {0: 9, 1: 3}, "b": {0: 0}})
    assert [(each.topic, each.partition, each.records) for each in found] == [
        ("a", 0, 0),
        ("a", 1, 6),
        ("a", 2, None),
        ("b", 0, 9),
        ("b", 1, None),
        ("b", 2, None),
    ]
    assert kafka.asked == [{("a", 1): 3, ("b", 0): 0}]
    assert longest(found, to_micros(kafka.now)) == 8


def test_nothing_is_negative_of_a_topic_that_was_made_anew_or_a_record_from_the_future(
    kafka: Kafka,
) -> None:
    (only,) = lags(kafka, ["a"], {"a": {0: 40}})
    assert (only.records, only.seconds(to_micros(kafka.now))) == (0, 0)
    assert PartitionLag("a", 0, 9, 8, oldest=5_000_000).seconds(4_000_000) == 0


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        ([], None),
        ([PartitionLag("a", 0, 9, None)], None),
        ([PartitionLag("a", 0, 9, 8)], None),
        ([PartitionLag("a", 0, 9, 9)], 0),
        ([PartitionLag("a", 0, 9, None), PartitionLag("a", 1, 9, 8, oldest=1_000_000)], 4),
    ],
)
def test_the_longest_is_of_those_that_are_known(
    found: list[PartitionLag], seconds: float | None
) -> None:
    assert longest(found, 5_000_000) == seconds
