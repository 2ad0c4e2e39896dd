"""What cannot be read any more is said, and never skipped: topics made anew, another prefix."""

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import UnknownTopicOrPartitionError

from streaming.settings import KafkaSettings
from streaming.topics import Watcher
from tests.stack.mirror import Mirror
from tests.stack.scenes import create_topics, records_of
from tests.stack.streams import Stream, until
from tests.stack.watched import SLOW, Restarted, Watched

pytestmark = [pytest.mark.stack, pytest.mark.long(part="checkpoints")]


@pytest.fixture
def topic(place: Watched) -> Iterator[str]:
    """One of the test's own that has all events of the keyspace: the agent's own stays whole."""
    name = f"events_{uuid.uuid4().hex[:8]}"
    create_topics(place.stack, [name])
    with Mirror(place.stack, place.keyspace, lambda _table: name):
        yield name


@pytest.fixture
def restarted(place: Watched, topic: str, tmp_path: Path) -> Iterator[Restarted]:
    """A stream that reads it."""
    made = place.stream(tmp_path, {"kafka": {"topic_prefix": topic}})
    yield made
    made.forget()


def make_anew(place: Watched, topic: str, records: Sequence[Any] = ()) -> None:
    """Delete the topic and make it again under its name, with these records."""
    admin = KafkaAdminClient(bootstrap_servers=place.stack.bootstrap_servers)
    watcher = Watcher(KafkaSettings(bootstrap_servers=place.stack.bootstrap_servers))
    before = watcher.ids([topic]).topics[topic]
    try:
        admin.delete_topics([topic])

        def made() -> bool:
            """The producer of events may ask for it meanwhile, and so make it."""
            with contextlib.suppress(Exception):
                create_topics(place.stack, [topic])
            with contextlib.suppress(UnknownTopicOrPartitionError):
                return watcher.ids([topic]).topics.get(topic, before) != before
            return False

        until("the topic is a new one", made)
    finally:
        watcher.close()
        admin.close()
    producer = KafkaProducer(bootstrap_servers=place.stack.bootstrap_servers)
    for each in records:
        producer.send(each.topic, key=each.key, value=each.value, partition=each.partition)
    producer.flush()
    producer.close()


def ends_saying(stream: Stream, *texts: str) -> None:
    """It ends with exit code 2 and one line that has these texts."""
    until("it ends", lambda: stream.died() is not None, SLOW)
    assert stream.died() == 2
    stream.kill()
    lines = stream.log.read_text(encoding="utf-8").splitlines()  # Spark may tell of its end later
    (line,) = [each for each in lines if each.startswith("reconcile: ")][-1:]
    assert line.startswith("reconcile: unread records are lost"), line
    assert all(text in line for text in (*texts, "--accept-loss")), line


def work(restarted: Restarted) -> None:
    """Start, repair some differences, and stop.

    They are made when the stream is there: after a loss its memory begins at its start.
    """
    restarted.stream.start()
    restarted.stream.wait_until_watching()
    restarted.plant()
    restarted.await_convergence()
    assert restarted.stream.stop() == 0


@pytest.mark.parametrize("longer", [False, True], ids=["shorter", "longer"])
def test_a_topic_that_was_made_anew_is_said_and_gone_on_with_only_when_told(
    restarted: Restarted, topic: str, longer: bool
) -> None:
    work(restarted)
    stream, place = restarted.stream, restarted.place
    make_anew(place, topic, 3 * records_of(place.stack, topic) if longer else ())
    ends_saying(stream.start(), "the topic was made anew", topic)
    stream.arguments = ("--accept-loss",)
    work(restarted)
    stream.arguments = ()
    work(restarted)


def test_a_topic_that_is_made_anew_while_it_is_read_ends_the_stream(
    restarted: Restarted, topic: str
) -> None:
    stream = restarted.stream
    stream.start()
    restarted.plant()
    restarted.await_convergence()
    make_anew(restarted.place, topic)
    ends_saying(stream)


def test_another_prefix_is_said_while_the_old_topic_has_an_unread_tail(
    restarted: Restarted, topic: str
) -> None:
    work(restarted)
    stream, place = restarted.stream, restarted.place
    end, other = len(records_of(place.stack, topic)), f"other_{topic}"
    restarted.plant()
    until("the events are in Kafka", lambda: len(records_of(place.stack, topic)) > end)
    create_topics(place.stack, [other])
    settings = stream.config.read_text(encoding="utf-8")
    old, new = (f'topic_prefix = "{each}"' for each in (topic, other))
    assert old in settings
    stream.config.write_text(settings.replace(old, new), encoding="utf-8")
    ends_saying(stream.start(), "the topic is no longer read", topic)
    stream.config.write_text(settings, encoding="utf-8")
    stream.start()
    restarted.await_convergence()
    assert stream.stop() == 0
