"""One topic for all tables, and the topics of single tables that an installation had before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from checkpoints.bookmarks import Bookmark, KafkaIds, Place
from checkpoints.memory_progress import MemoryBookmarks
from reconcilers.capture.frontier import CANARY_TABLE
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, keeping
from reconcilers.words.errors import EventsLost, Unreachable
from streaming.pipeline.starting import OtherStream, StartingPoint
from streaming.pipeline.table_topics import TableTopics
from streaming.settings import CassandraSettings, KafkaSettings, Settings
from streaming.tables import canary_schema
from streaming.topics import event_topics, table_topics

ONE, TRUTH, LISTING = "cdc", "cdc.mail.imapuidtable", "cdc.mail.messageidtable"
AGAIN = "reconciler.one.suspects"
INDEXED = keeping(MESSAGE, [each.name for each in MESSAGE.projections])
SETTINGS = Settings(
    kafka=KafkaSettings(topic_prefix=ONE), cassandra=CassandraSettings(keyspace="mail")
)


NOBODY = OtherStream(lambda: None, (), lambda _heard: None)
"""No stream has run in the other mode."""


@dataclass
class Kafka:
    """Topics of one partition: the first offset, and the one after the last."""

    bounds: dict[str, tuple[int, int]]
    away: bool = False
    markers: dict[str, int] = field(default_factory=dict)
    """Of some topics from where on they hold markers of transactions only."""

    def beginning_offsets(self, topics: Iterable[str]) -> Mapping[str, Mapping[int, int]]:
        return {each: {0: self.bounds[each][0]} for each in topics if each in self.bounds}

    def end_offsets(self, topics: Iterable[str]) -> Mapping[str, Mapping[int, int]]:
        return {each: {0: self.bounds[each][1]} for each in topics if each in self.bounds}

    def ids(self, topics: Iterable[str]) -> KafkaIds:
        return KafkaIds("ours", {each: f"the {each}" for each in topics if each in self.bounds})

    def missing(self, topics: Iterable[str]) -> list[str]:
        if self.away:
            raise Unreachable("no broker answers")
        return [each for each in topics if each not in self.bounds]

    def holds_records(self, place: Place, begin: int, end: int) -> bool:
        return begin < min(end, self.markers.get(place[0], end))


# --- names


def test_the_agent_has_one_topic_for_all_tables() -> None:
    assert event_topics(SETTINGS, MESSAGE, Kafka({}).missing) == (ONE,)
    assert {TRUTH, LISTING} <= set(table_topics(SETTINGS, MESSAGE))


def test_the_topics_of_single_tables_that_are_there_are_read_too() -> None:
    kafka = Kafka({TRUTH: (0, 9), "cdc.other.imapuidtable": (0, 9)})
    assert event_topics(SETTINGS, MESSAGE, kafka.missing) == (ONE, TRUTH)


def test_the_table_of_canaries_has_one_name() -> None:
    _, made = canary_schema.statements("canaries")
    assert made.startswith(f"CREATE TABLE IF NOT EXISTS canaries.{CANARY_TABLE} (")


def test_a_canary_is_on_one_node_however_many_data_centres_there_are() -> None:
    """Any other strategy puts a copy into each, whose agent would answer for the wrong node."""
    keyspace, _ = canary_schema.statements("canaries")
    assert "{'class': 'SimpleStrategy', 'replication_factor': 1}" in keyspace


# --- where an installation goes on whose agents were switched


@dataclass
class Bench:
    """A stream of an installation that was there before, and what it is told."""

    kafka: Kafka
    settled: dict[str, int]
    lost: int = 0
    bookmarks: MemoryBookmarks = field(default_factory=MemoryBookmarks)

    def __post_init__(self) -> None:
        self.record(self.settled)

    def record(self, settled: Mapping[str, int]) -> None:
        """What a stream has settled."""
        places: dict[Place, int] = {(topic, 0): at for topic, at in settled.items()}
        self.bookmarks.record(Bookmark("stream", places, self.kafka.ids(settled)))

    def lose(self, places: Collection[Place]) -> None:
        self.lost += len(places)

    def start(self, family: Family = MESSAGE) -> dict[str, int]:
        """Where a stream begins that is started now."""
        self.table_topics.forget_deleted()
        self.table_topics.note_ends()
        topics = (*event_topics(SETTINGS, family, self.kafka.missing), AGAIN)
        starting = StartingPoint(
            self.kafka,
            topics,
            lambda: self.bookmarks.newest("stream"),
            lambda: None,
            NOBODY,
            self.lose,
        )
        positions = starting.positions()
        assert not starting.has_lost()
        return {topic: at for (topic, _), at in positions.items()}

    @property
    def table_topics(self) -> TableTopics:
        return TableTopics(self.kafka, self.bookmarks, "stream", ONE)


OLD = {TRUTH: (20, 50), LISTING: (20, 50), AGAIN: (0, 7)}
SETTLED = {TRUTH: 40, LISTING: 50, AGAIN: 7}


def test_the_one_topic_begins_at_its_beginning_and_the_old_ones_go_on() -> None:
    bench = Bench(Kafka({**OLD, ONE: (0, 30)}), SETTLED)
    assert bench.start() == {**SETTLED, ONE: 0}
    assert bench.lost == 0


def test_afterwards_it_goes_on_after_what_is_settled_of_all() -> None:
    bench = Bench(Kafka({**OLD, ONE: (10, 30)}), {**SETTLED, ONE: 25})
    assert bench.start() == {**SETTLED, ONE: 25}
    assert bench.lost == 0


def test_what_the_one_topic_no_longer_holds_was_never_read() -> None:
    bench = Bench(Kafka({**OLD, ONE: (10, 30)}), SETTLED)
    with pytest.raises(EventsLost, match=f"{ONE}/0 0–9: Kafka's retention has passed"):
        bench.start()


def test_a_topic_that_is_read_for_the_first_time_beside_the_one_has_lost_nothing() -> None:
    """Of a table that is newly kept, from before the switch."""
    unseen = "cdc.mail.firstunseen"
    bench = Bench(Kafka({**OLD, ONE: (0, 30), unseen: (5, 9)}), {**SETTLED, ONE: 25})
    assert bench.start(INDEXED) == {**SETTLED, ONE: 25, unseen: 5}


# --- topics of single tables that are deleted


def gone(bench: Bench, *topics: str) -> None:
    for each in topics:
        del bench.kafka.bounds[each]


def test_what_was_read_to_its_end_and_is_deleted_then_is_forgotten() -> None:
    bench = Bench(Kafka({**OLD, ONE: (0, 30)}), SETTLED)
    bench.start()
    read = {**SETTLED, TRUTH: 50, ONE: 30}
    bench.record(read)
    bench.table_topics.note_ends()
    gone(bench, TRUTH, LISTING)
    assert bench.start() == {ONE: 30, AGAIN: 7}
    newest = bench.bookmarks.newest("stream")
    assert newest is not None
    assert set(newest.settled) == {(ONE, 0), (AGAIN, 0)}
    assert bench.start() == {ONE: 30, AGAIN: 7}
    assert bench.lost == 0


def test_a_topic_that_ends_with_markers_of_transactions_is_read_to_its_end() -> None:
    """No record is behind what is settled: such a marker has an offset, and never comes."""
    bench = Bench(Kafka({**OLD, ONE: (0, 30)}), {**SETTLED, TRUTH: 49})
    bench.kafka.markers[TRUTH] = 49
    bench.start()
    gone(bench, TRUTH)
    assert bench.start() == {ONE: 0, LISTING: 50, AGAIN: 7}
    assert bench.lost == 0


def test_what_was_deleted_with_an_unread_tail_is_lost() -> None:
    bench = Bench(Kafka({**OLD, ONE: (0, 30)}), SETTLED)
    bench.start()
    gone(bench, TRUTH, LISTING)
    with pytest.raises(EventsLost, match=f"{TRUTH}/0 from 40 on: the topic is gone") as told:
        bench.start()
    assert LISTING not in str(told.value)


def test_an_end_that_was_noted_before_more_came_proves_nothing() -> None:
    bench = Bench(Kafka({**OLD, ONE: (0, 30)}), {**SETTLED, TRUTH: 50})
    bench.start()
    bench.record({**SETTLED, TRUTH: 60, ONE: 30})
    gone(bench, TRUTH)
    with pytest.raises(EventsLost, match=f"{TRUTH}/0 from 60 on: the topic is gone"):
        bench.start()


def test_an_end_that_is_none_any_more_is_not_noted_any_more() -> None:
    bench = Bench(Kafka({**OLD, ONE: (0, 30)}), {**SETTLED, TRUTH: 50})
    bench.start()
    bench.kafka.bounds[TRUTH] = (20, 60)
    bench.table_topics.note_ends()
    gone(bench, TRUTH)
    with pytest.raises(EventsLost, match=f"{TRUTH}/0 from 50 on: the topic is gone"):
        bench.start()


def test_where_no_topic_of_a_table_was_ever_read_kafka_is_not_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(Kafka({ONE: (0, 30), AGAIN: (0, 7)}), {ONE: 30, AGAIN: 7})
    bench.kafka.away = True
    bench.table_topics.note_ends()
    assert caplog.messages == []


def test_an_end_is_noted_until_it_is_forgotten() -> None:
    """One is deleted while the stream runs, which notes the others when it stops."""
    bench = Bench(Kafka({**OLD, ONE: (0, 30)}), {**SETTLED, TRUTH: 50})
    bench.start()
    gone(bench, TRUTH)
    bench.table_topics.note_ends()
    assert bench.start() == {ONE: 0, LISTING: 50, AGAIN: 7}


def test_without_kafka_no_end_is_noted_and_a_stop_is_still_a_stop() -> None:
    bench = Bench(Kafka({**OLD, ONE: (0, 30)}), {**SETTLED, TRUTH: 50})
    bench.kafka.away = True
    bench.table_topics.note_ends()
    bench.kafka.away = False
    gone(bench, TRUTH)
    with pytest.raises(EventsLost):
        bench.start()


def test_where_nothing_was_ever_settled_there_is_nothing_to_note() -> None:
    kafka, bookmarks = Kafka({ONE: (0, 0), TRUTH: (0, 5)}), MemoryBookmarks()
    topics = TableTopics(kafka, bookmarks, "stream", ONE)
    topics.forget_deleted()
    topics.note_ends()
    assert bookmarks.newest("stream") is None
