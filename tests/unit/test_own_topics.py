"""Our topics and group are named by James's keyspace: two installations on one Kafka do not mix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from checkpoints.bookmarks import Bookmark, Offsets
from checkpoints.memory_progress import MemoryBookmarks
from streaming.commands.dead_letters import DeadLetterRetry
from streaming.commands.mode import StreamNames
from streaming.pipeline.table_topics import TableTopics
from streaming.settings import CassandraSettings, KafkaSettings, Mode, Settings
from streaming.topics import Record, own_topics, shared_dead_letters, shared_suspects

ONE, OTHER = (Settings(cassandra=CassandraSettings(keyspace=each)) for each in ("one", "other"))
NAMED = Settings(kafka=KafkaSettings(suspects_topic="mine", dead_letters_topic="letters"))


def test_two_installations_have_no_name_in_common() -> None:
    ours, theirs = ({*own_topics(each.kafka), each.kafka.group} for each in (ONE, OTHER))
    assert ours == {
        "reconciler.one.suspects",
        "reconciler.one.suspects.observe",
        "reconciler.one.dead-letters",
        "reconciler.one",
    }
    assert not ours & theirs


def test_what_is_named_keeps_its_name() -> None:
    assert NAMED.kafka.suspects_topic == "mine"
    assert NAMED.kafka.observe_suspects_topic == "reconciler.apache_james.suspects.observe"
    assert Settings.model_validate(NAMED.model_dump()) == NAMED


@pytest.mark.parametrize(
    ("mode", "topic", "group"),
    [
        (Mode.REPAIR, "reconciler.one.suspects", "reconciler.one"),
        (Mode.OBSERVE, "reconciler.one.suspects.observe", "reconciler.one-observe"),
    ],
)
def test_each_mode_has_its_own(mode: Mode, topic: str, group: str) -> None:
    names = StreamNames.of(ONE, mode)
    assert (names.suspects_topic, names.group) == (topic, group)


# --- what is left of before -----------------------------------------------------------------------


def none_missing(topics: Iterable[str]) -> list[str]:
    return []


def all_missing(topics: Iterable[str]) -> list[str]:
    return list(topics)


def test_the_shared_topic_is_read_while_it_is_there() -> None:
    assert shared_suspects(ONE, Mode.REPAIR, none_missing) == ("reconciler.suspects",)
    assert shared_suspects(ONE, Mode.OBSERVE, none_missing) == ("reconciler.suspects.observe",)
    assert shared_suspects(ONE, Mode.REPAIR, all_missing) == ()


def test_who_has_named_a_topic_has_left_nothing_in_the_shared_one() -> None:
    assert shared_suspects(NAMED, Mode.REPAIR, none_missing) == ()
    assert shared_dead_letters(NAMED) == ()
    assert shared_dead_letters(ONE) == ("reconciler.dead-letters",)


@dataclass
class Kafka:
    """Positions of topics; those not in ``ends`` are missing."""

    ends: dict[str, dict[int, int]]
    committed_of: dict[str, dict[str, dict[int, int]]] = field(default_factory=dict)
    read: list[tuple[str, int]] = field(default_factory=list)

    def missing(self, topics: Iterable[str]) -> list[str]:
        return [each for each in topics if each not in self.ends]

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        return {each: self.ends[each] for each in topics}

    def beginning_offsets(self, topics: Iterable[str]) -> Offsets:
        return {each: dict.fromkeys(self.ends[each], 0) for each in topics}

    def committed(self, group: str) -> Offsets:
        return self.committed_of.get(group, {})

    def commit(self, group: str, offsets: Offsets) -> None:
        for topic, at in offsets.items():
            self.committed_of.setdefault(group, {})[topic] = dict(at)

    def holds_records(self, _place: tuple[str, int], begin: int, end: int) -> bool:
        return begin < end

    def records(self, topic: str, partition: int, begin: int, end: int) -> Iterator[Record]:
        for offset in range(begin, end):
            self.read.append((topic, offset))
            yield Record(topic, partition, offset, None, None)


def test_the_shared_topic_may_be_deleted_when_it_was_read_to_its_end() -> None:
    kafka, bookmarks = Kafka({"reconciler.suspects": {0: 7}, "james": {0: 9}}), MemoryBookmarks()
    topics = TableTopics(kafka, bookmarks, "stream", "james")  # type: ignore[arg-type]
    bookmarks.record(Bookmark("stream", {("reconciler.suspects", 0): 7, ("james", 0): 9}))
    topics.note_ends()
    del kafka.ends["reconciler.suspects"]
    topics.forget_deleted()
    newest = bookmarks.newest("stream")
    assert newest is not None
    assert newest.settled == {("james", 0): 9}


def test_letters_of_before_are_tried_once() -> None:
    old, new = "reconciler.dead-letters", "reconciler.one.dead-letters"
    kafka = Kafka({old: {0: 5}, new: {0: 2}}, {"reconciler.dead-letters": {old: {0: 3}}})
    retry = DeadLetterRetry(kafka, ONE.kafka, shared_dead_letters(ONE))  # type: ignore[arg-type]
    assert retry.all() == (4, 4)
    assert kafka.read == [(new, 0), (new, 1), (old, 3), (old, 4)]
    assert retry.all() == (0, 0)
