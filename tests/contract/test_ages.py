"""The age of records at a real broker, which the streams' measuring asks for again and again."""

import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaProducer

from streaming.settings import KafkaSettings
from streaming.topics import Watcher
from tests.endpoints import Endpoints
from tests.stack.scenes import create_topics

FIRST, SECOND = 1_700_000_000_000, 1_700_000_060_000
"""When two records of a partition were written, ms."""


@pytest.fixture(scope="module")
def topic(stack: Endpoints) -> str:
    """With two records in each of its two partitions."""
    name = f"ages-{uuid.uuid4().hex[:8]}"
    create_topics(stack, [name])
    with closing(KafkaProducer(bootstrap_servers=stack.bootstrap_servers)) as producer:
        for partition in (0, 1):
            for at in (FIRST, SECOND):
                producer.send(name, b"x", partition=partition, timestamp_ms=at + partition)
        producer.flush()
    return name


@pytest.fixture
def watcher(stack: Endpoints) -> Iterator[Watcher]:
    with closing(Watcher(KafkaSettings(bootstrap_servers=stack.bootstrap_servers))) as made:
        yield made


def test_each_time_it_is_the_record_at_the_offset(topic: str, watcher: Watcher) -> None:
    first = {(topic, 0): FIRST * 1000, (topic, 1): (FIRST + 1) * 1000}
    for _ in range(3):
        assert watcher.written_at(dict.fromkeys(first, 0)) == first


def test_offsets_of_later_and_fewer_partitions(topic: str, watcher: Watcher) -> None:
    both, one = {(topic, 0): 1, (topic, 1): 0}, {(topic, 1): 1}
    expected = {(topic, 0): SECOND * 1000, (topic, 1): (FIRST + 1) * 1000}
    assert watcher.written_at(both) == expected
    assert watcher.written_at(one) == {(topic, 1): (SECOND + 1) * 1000}
    assert watcher.written_at(both) == expected


def test_what_was_asked_for_can_be_read_afterwards(topic: str, watcher: Watcher) -> None:
    watcher.written_at({(topic, 0): 0})
    assert [each.value for each in watcher.records(topic, 0, 0, 2)] == [b"x", b"x"]
