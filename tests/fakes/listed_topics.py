"""Kafka's topics as `reconcile doctor` looks at them, and what it says of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from checkpoints.bookmarks import Offsets, Place
from reconcilers.declared.families.message import MESSAGE
from streaming.commands.doctor.checks.broker import topics
from streaming.commands.doctor.checks.check import Check, KafkaContext, Level
from streaming.settings import Settings
from streaming.topics import PartitionCopies, Record, TopicCopies, Watcher, own_topics

SETTINGS = Settings()
EVENTS, OURS = SETTINGS.kafka.topic_prefix, own_topics(SETTINGS.kafka)
RIGHT = {
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "max.message.bytes": "8388608",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
}


def copied(copies: int, number: int = 0) -> PartitionCopies:
    """A partition that is led and in sync."""
    return PartitionCopies(number, copies, copies, True)


def all_copied(copies: int) -> tuple[PartitionCopies, ...]:
    """As many partitions as are chosen, each led and in sync."""
    return tuple(copied(copies, each) for each in range(SETTINGS.kafka.partitions))


@dataclass
class FakeTopics:
    """Three brokers and all topics, where everything is right unless a test changes it.

    ``differs`` has the settings that differ from `RIGHT`, by topic, and by name. ``added`` is the
    number of records of the last day, by topic.
    """

    absent: frozenset[str] = frozenset()
    differs: dict[str, dict[str, str]] = field(default_factory=dict)
    brokers: int = 3
    partitions: Mapping[str, tuple[PartitionCopies, ...]] = field(default_factory=dict)
    newest: dict[str, Record] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)
    tells_settings: bool = True

    def missing(self, topics: Iterable[str]) -> list[str]:
        there = {EVENTS, *OURS} - self.absent
        return [each for each in topics if each not in there]

    def configured(self, topics: Iterable[str], name: str) -> dict[str, str]:
        if not self.tells_settings:
            return {}
        return {each: self.differs.get(each, {}).get(name, RIGHT[name]) for each in topics}

    def copies(self, topics: Iterable[str]) -> TopicCopies:
        right = all_copied(3)
        return TopicCopies(
            self.brokers, {each: self.partitions.get(each, right) for each in topics}
        )

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        ends = {each: 1 if each in self.newest else 0 for each in topics}
        return {each: {0: end + self.added.get(each, 0)} for each, end in ends.items()}

    def offsets_at(self, topics: Iterable[str], _at: int) -> dict[Place, int]:
        return {(each, 0): 0 for each in topics}

    def records(self, topic: str, _partition: int, begin: int, end: int) -> Iterator[Record]:
        assert end == begin + 1
        if topic in self.newest:
            yield self.newest[topic]


def told(watcher: FakeTopics) -> list[Check]:
    """What doctor says of these topics, except what is in order."""
    context = KafkaContext(SETTINGS, (MESSAGE,), cast(Watcher, watcher))
    return [each for each in topics(context) if each.level is not Level.OK]
