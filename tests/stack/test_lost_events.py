"""What cannot be read any more is said, and never skipped: topics made anew, another prefix."""

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import UnknownTopicOrPartitionError
from kafka.structs import TopicPartition

from checkpoints.cassandra import CassandraBookmarks, CassandraLineage, Store
from reconcilers.rows.finding import State
from reconcilers.words.exit_codes import ExitCode
from reconcilers.words.model import Kind
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import KafkaSettings, Mode, load
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
    """It is refused, and one line says so that has these texts."""
    until("it ends", lambda: stream.died() is not None, SLOW)
    assert stream.died() == ExitCode.REFUSED
    stream.kill()
    lines = stream.log.read_text(encoding="utf-8").splitlines()  # Spark may tell of its end later
    (line,) = [each for each in lines if each.startswith("reconcile: ")][-1:]
    assert line.startswith("reconcile: unread records are lost"), line
    assert all(text in line for text in (*texts, "--accept-loss")), line


def work(restarted: Restarted) -> None:
    """Start, repair some differences, and stop.

    They are made when the stream is there: after a loss its memory begins at its start.
    """
    restarted.stream.start_watching()
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
    ends_saying(stream.start(), "the topic was recreated", topic)
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


def test_the_first_observing_stream_goes_on_after_what_was_repaired_and_ends_no_memory(
    restarted: Restarted, topic: str
) -> None:
    """Kafka has deleted the first events by then, which the repairing stream had looked at."""
    work(restarted)
    store = Store(restarted.place.session, restarted.own)
    lineage = CassandraLineage(store)
    before = lineage.watching()
    assert before is not None
    nothing_settled(restarted, store, Mode.OBSERVE)
    delete_settled(restarted, store, topic)
    with Stream(restarted.stream.config, mode="observe") as observing:
        until("it says where it begins", lambda: observing.said("going on after"), SLOW)
        restarted.plant()
        until("a difference is observed", lambda: observes(restarted), SLOW)
        assert lineage.watching() == before
        assert observing.stop() == 0
    assert lineage.watching() == before
    work(restarted)


def observes(restarted: Restarted) -> bool:
    found = restarted.open_findings()
    return any((each.kind, each.state) == (Kind.MISSING_ROW, State.OBSERVED) for each in found)


def bookmarks_of(restarted: Restarted, mode: Mode) -> str:
    settings = load(restarted.stream.config, {})
    return StreamNames.of(settings, mode).bookmarks(settings.families()[0])


def nothing_settled(restarted: Restarted, store: Store, mode: Mode) -> None:
    """As if no stream had ever run in this mode."""
    restarted.place.session.execute(
        f"DELETE FROM {restarted.own}.settled_offsets WHERE stream = %s",
        (bookmarks_of(restarted, mode),),
    )
    assert CassandraBookmarks(store).newest(bookmarks_of(restarted, mode)) is None


def delete_settled(restarted: Restarted, store: Store, topic: str) -> None:
    """What retention would do: of this topic nothing is left that the repairing stream settled."""
    newest = CassandraBookmarks(store).newest(bookmarks_of(restarted, Mode.REPAIR))
    assert newest is not None
    settled = {place: at for place, at in newest.settled.items() if place[0] == topic}
    assert any(settled.values())
    admin = KafkaAdminClient(bootstrap_servers=restarted.place.stack.bootstrap_servers)
    try:
        admin.delete_records({TopicPartition(*place): at for place, at in settled.items()})
    finally:
        admin.close()
