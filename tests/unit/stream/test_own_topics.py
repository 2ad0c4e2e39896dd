"""Our topics and group are named by James's keyspace: two installations on one Kafka do not mix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from checkpoints.bookmarks import Offsets
from streaming.commands.person.dead_letters import DeadLetters
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import CassandraSettings, KafkaSettings, Mode, Settings
from streaming.topics import Record, own_topics

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

    def records(self, topic: str, partition: int, begin: int, end: int) -> Iterator[Record]:
        for offset in range(begin, end):
            self.read.append((topic, offset))
            yield Record(topic, partition, offset, None, None)


def test_a_letter_is_tried_once_and_none_of_another_installation_is() -> None:
    ours, theirs = "reconciler.one.dead-letters", "reconciler.other.dead-letters"
    committed = {"reconciler.one.dead-letters": {ours: {0: 3}}}
    kafka = Kafka({theirs: {0: 2}, ours: {0: 5}}, committed)
    letters = DeadLetters(kafka, ONE.kafka)  # type: ignore[arg-type]
    assert letters.retry() == (2, 2)
    assert kafka.read == [(ours, 3), (ours, 4)]
    assert letters.retry() == (0, 0)
    assert DeadLetters(Kafka({}), ONE.kafka).retry() == (0, 0)  # type: ignore[arg-type]
