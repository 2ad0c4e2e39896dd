"""What cannot be read any more is said, and never skipped: topics made anew, another prefix."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import UnknownTopicOrPartitionError

from streaming.settings import KafkaSettings
from streaming.topics import Watcher
from tests.stack.scenes import create_event_topics, records_of
from tests.stack.streams import Stream, until
from tests.stack.users import PROJECTION, TRUTH
from tests.stack.watched import SLOW, Restarted, Watched

pytestmark = [pytest.mark.stack, pytest.mark.long(part="checkpoints")]

OTHER_PREFIX = "elsewhere"


def topics(place: Watched) -> list[str]:
    return [f"{place.stack.topic_prefix}.{place.keyspace}.{table}" for table in (TRUTH, PROJECTION)]


def make_anew(place: Watched, records: Sequence[Any] = ()) -> None:
    """Delete the topics of events and make them again under their names, with these records."""
    names = topics(place)
    admin = KafkaAdminClient(bootstrap_servers=place.stack.bootstrap_servers)
    watcher = Watcher(KafkaSettings(bootstrap_servers=place.stack.bootstrap_servers))
    before = watcher.ids(names)
    try:
        admin.delete_topics(names)

        def made() -> bool:
            """The agent may ask for one of them meanwhile, and so make it."""
            with contextlib.suppress(Exception):
                create_event_topics(place.stack, place.keyspace)
            with contextlib.suppress(UnknownTopicOrPartitionError):
                now = watcher.ids(names)
                return all(
                    now.topics.get(each, before.topics[each]) != before.topics[each]
                    for each in names
                )
            return False

        until("the topics are new ones", made)
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
    line = stream.log.read_text(encoding="utf-8").strip().splitlines()[-1]
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
    restarted: Restarted, longer: bool
) -> None:
    work(restarted)
    stream, place = restarted.stream, restarted.place
    make_anew(place, 3 * records_of(place.stack, *topics(place)) if longer else ())
    ends_saying(stream.start(), "the topic was made anew", topics(place)[0])
    stream.arguments = ("--accept-loss",)
    work(restarted)
    stream.arguments = ()
    work(restarted)


def test_a_topic_that_is_made_anew_while_it_is_read_ends_the_stream(restarted: Restarted) -> None:
    stream = restarted.stream
    stream.start()
    restarted.plant()
    restarted.await_convergence()
    make_anew(restarted.place)
    ends_saying(stream)


def test_another_prefix_is_said_while_the_old_topics_have_an_unread_tail(
    restarted: Restarted,
) -> None:
    work(restarted)
    stream, place = restarted.stream, restarted.place
    ends = len(records_of(place.stack, *topics(place)))
    restarted.plant()
    until("the events are in Kafka", lambda: len(records_of(place.stack, *topics(place))) > ends)
    create_event_topics(replace(place.stack, topic_prefix=OTHER_PREFIX), place.keyspace)
    settings = stream.config.read_text(encoding="utf-8")
    old, new = (f'topic_prefix = "{each}"' for each in (place.stack.topic_prefix, OTHER_PREFIX))
    assert old in settings
    stream.config.write_text(settings.replace(old, new), encoding="utf-8")
    ends_saying(stream.start(), "the topic is no longer read", place.stack.topic_prefix)
    stream.config.write_text(settings, encoding="utf-8")
    stream.start()
    restarted.await_convergence()
    assert stream.stop() == 0
