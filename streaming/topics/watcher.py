"""Positions in topics: ends, beginnings, ids, the age of records, what a group committed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    NoError,
    NotCoordinatorError,
    TopicAlreadyExistsError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

from checkpoints.bookmarks import KafkaIds, Offsets, Place, Positions, flat
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Micros
from streaming.settings import KafkaSettings
from streaming.topics import topic_copies
from streaming.topics.clients import Renewed
from streaming.topics.kafka_errors import connecting, translated, unreachable
from streaming.topics.record import Record
from streaming.topics.topic_copies import TopicCopies

log = logging.getLogger("reconciler")

T = TypeVar("T")

AskOffsets = Callable[[list[TopicPartition]], dict[TopicPartition, int]]
AskConsumer = Callable[[KafkaConsumer], AskOffsets]

NO_ID = "00000000-0000-0000-0000-000000000000"
"""The id of a topic if the broker has no ids, or does not know the topic right now."""

BOOTSTRAP_MS = 10_000
"""How long (ms) a broker may take to answer at first, and to list a topic that it made."""

NO_COORDINATOR_YET = (
    CoordinatorNotAvailableError,
    CoordinatorLoadInProgressError,
    NotCoordinatorError,
)
"""A broker's answers while it creates, moves or loads the state of a group."""

SILENT = 60
"""Seconds after which a partition with records that returns none has no leader."""

FETCH_BYTES = 65_536
"""Bytes of a partition in one fetch; a larger record is still read. Few are read here."""


class Watcher:
    """Reads positions of topics for lag, and commits offsets to the operator's consumer group."""

    def __init__(self, settings: KafkaSettings) -> None:
        """Connect. Raises `Unreachable` or `Misconfigured`."""
        self._settings = settings
        with connecting(settings):
            self._admins = Renewed(settings, _admin)
        with ExitStack() as unless_connected, connecting(settings):
            unless_connected.callback(self._admins.close)
            self._consumers = Renewed(settings, _consumer)
            unless_connected.pop_all()

    @property
    def _admin(self) -> KafkaAdminClient:
        return self._admins.now()

    @property
    def _consumer(self) -> KafkaConsumer:
        """The consumer. Take it once where one call prepares the next."""
        return self._consumers.now()

    def create(self, topics: Iterable[str]) -> None:
        """Create the missing ones of these topics, as `topic_copies.create` does.

        Returns when the broker lists them, which is some time after it made them. Raises
        `Unreachable`.
        """
        absent = self.missing(topics)
        try:
            if absent:
                topic_copies.create(self._admin, absent, self._settings)
        except TopicAlreadyExistsError:
            log.debug("another process made a topic of %s at the same time", absent)
        except KafkaError as failed:
            raise unreachable(f"creating topics {', '.join(absent)}", failed) from failed
        until = time.monotonic() + BOOTSTRAP_MS / 1000
        while unknown := self.missing(absent):
            if time.monotonic() > until:
                raise Unreachable(f"created, but not reported by Kafka: {', '.join(unknown)}")
            time.sleep(0.1)

    def partitions(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions. Raises `Unreachable`."""
        with translated(f"the partitions of {topic}"):
            return sorted(self._consumer.partitions_for_topic(topic) or ())

    def copies(self, topics: Iterable[str]) -> TopicCopies:
        """The brokers, and the copies of these topics, which exist. Raises `Unreachable`."""
        with translated("the copies of topics"):
            return topic_copies.copies_of(self._admin, topics)

    def missing(self, topics: Iterable[str]) -> list[str]:
        """Those of the topics that do not exist. Raises `Unreachable`."""
        with translated("which topics there are"):
            existing = self._consumer.topics()
        return [topic for topic in topics if topic not in existing]

    def ids(self, topics: Iterable[str]) -> KafkaIds:
        """The ids of these topics and of the cluster. Raises `Unreachable`."""
        with translated("the ids of topics"):
            cluster = self._admin.describe_cluster()["cluster_id"]
            described = self._admin.describe_topics(list(topics))
        known = {each["name"]: str(each["topic_id"]) for each in described if each.get("topic_id")}
        return KafkaIds(str(cluster), {name: each for name, each in known.items() if each != NO_ID})

    def end_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """The offset after the last record, by topic and partition. Raises `Unreachable`."""
        return self._of_topics(topics, lambda consumer: consumer.end_offsets)

    def beginning_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """The oldest offset that is still kept, by topic and partition. Raises `Unreachable`."""
        return self._of_topics(topics, lambda consumer: consumer.beginning_offsets)

    def written_at(self, places: Positions) -> dict[Place, Micros]:
        """When (µs) the first record from each offset on was written; may be incomplete."""
        asked = {TopicPartition(*place): offset for place, offset in places.items()}
        with translated("the age of records"):
            consumer = self._consumer
            consumer.assign(list(asked))
            try:
                return _first_from(consumer, asked)
            finally:
                consumer.resume(*asked)  # a partition stays paused when it is assigned again

    def offsets_at(self, topics: Iterable[str], at: Micros) -> dict[Place, int]:
        """The first offset written at this time (µs) or later; the end if there is none.

        Kafka's times are ms. Raises `Unreachable`.
        """
        ends = {
            TopicPartition(topic, number): end
            for topic, each in self.end_offsets(topics).items()
            for number, end in each.items()
        }
        with translated("offsets of a time"):
            found = self._consumer.offsets_for_times(dict.fromkeys(ends, at // 1000))
        return {
            (each.topic, each.partition): end if (told := found.get(each)) is None else told.offset
            for each, end in ends.items()
        }

    def commit(self, group: str, offsets: Offsets, note: str = "") -> None:
        """Commit offsets to a consumer group, for the operator's existing lag tools.

        ``note`` is stored beside each. Raises `Unreachable` if the broker did not take all.
        """
        positions = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, note, -1)
            for topic, partitions in offsets.items()
            for partition, offset in partitions.items()
        }

        def commit() -> None:
            for failed in self._admin.alter_group_offsets(group, positions).values():
                if failed is not NoError:
                    raise failed(f"of group {group}")

        self._of_coordinator(f"committing offsets of group {group}", commit)

    def committed(self, group: str) -> Offsets:
        """The offsets that a consumer group committed; empty if it never did.

        Raises `Unreachable`.
        """
        offsets: dict[str, dict[int, int]] = {}
        for partition, position in self._committed(group).items():
            offsets.setdefault(partition.topic, {})[partition.partition] = position.offset
        return offsets

    def notes(self, group: str) -> frozenset[str]:
        """The notes beside the offsets of a consumer group. Raises `Unreachable`."""
        return frozenset(str(each.metadata) for each in self._committed(group).values())

    def _committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        found: dict[TopicPartition, OffsetAndMetadata] = self._of_coordinator(
            f"offsets of group {group}",
            lambda: self._admin.list_group_offsets({group: None})[group],
        )
        return found

    def configured(self, topics: Iterable[str], name: str) -> dict[str, str]:
        """This setting of each topic, as it is now at the broker. Raises `Unreachable`."""
        asked = [ConfigResource(ConfigResourceType.TOPIC, each, [name]) for each in topics]
        with translated("the settings of topics"):
            told = self._admin.describe_configs(asked, config_filter=ConfigFilterType.ALL)
        configs = told.get("topic", {})
        return {topic: str(each[name]["value"]) for topic, each in configs.items() if name in each}

    def records(self, topic: str, partition: int, begin: int, end: int) -> Iterator[Record]:
        """Records from offset ``begin`` to before ``end``; none if Kafka dropped ``begin``.

        Raises `Unreachable`, also if nothing arrives for `SILENT` s.
        """
        place = TopicPartition(topic, partition)
        with translated(f"reading topic {topic}"):
            consumer = self._consumer
            consumer.assign([place])
            consumer.seek(place, begin)
            silent = 0
            while (at := consumer.position(place)) < end:
                for each in consumer.poll(timeout_ms=1000).get(place, ()):
                    if begin <= each.offset < end:
                        yield Record(topic, partition, each.offset, each.key, each.value)
                silent = silent + 1 if consumer.position(place) == at else 0
                if silent > SILENT:
                    raise Unreachable(f"reading topic {topic}: nothing has come for {SILENT} s")

    def holds_records(self, place: Place, begin: int, end: int) -> bool:
        """Whether these offsets have a record, not only markers; or may have had one, now gone."""
        found = begin < end and next(self.records(*place, begin, end), None) is not None
        return found or begin < min(end, flat(self.beginning_offsets(place[:1])).get(place, end))

    def close(self) -> None:
        """Close the connections."""
        self._consumers.close()
        self._admins.close()

    def _of_coordinator(self, what: str, ask: Callable[[], T]) -> T:
        """The answer of a group's coordinator, once there is one. Raises `Unreachable`.

        A client looks its coordinator up only once; if the group has moved, a new client finds it.
        """
        until = time.monotonic() + BOOTSTRAP_MS / 1000
        while True:
            try:
                return ask()
            except KafkaError as failed:
                if not isinstance(failed, NO_COORDINATOR_YET) or time.monotonic() > until:
                    raise unreachable(what, failed) from failed
                if isinstance(failed, NotCoordinatorError):
                    with connecting(self._settings):
                        self._admins.replace()
            time.sleep(0.2)

    def _of_topics(self, topics: Iterable[str], asked: AskConsumer) -> dict[str, dict[int, int]]:
        partitions = [
            TopicPartition(topic, number) for topic in topics for number in self.partitions(topic)
        ]
        found: dict[str, dict[int, int]] = {}
        with translated("positions of topics"):
            for partition, offset in _positions(asked(self._consumer), partitions).items():
                found.setdefault(partition.topic, {})[partition.partition] = offset
        return found


def _positions(ask: AskOffsets, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """The answer of a consumer's ``end_offsets`` or ``beginning_offsets``.

    The client raises `KeyError` for a partition without a known leader; this raises `Unreachable`.
    """
    try:
        return ask(partitions)
    except KeyError as leaderless:
        raise Unreachable(f"no broker leads {leaderless.args[0]}") from leaderless


def _first_from(
    consumer: KafkaConsumer, asked: Mapping[TopicPartition, int]
) -> dict[Place, Micros]:
    found: dict[Place, Micros] = {}
    for each, beginning in _positions(consumer.beginning_offsets, list(asked)).items():
        consumer.seek(each, max(asked[each], beginning))
    until = time.monotonic() + BOOTSTRAP_MS / 1000
    while len(found) < len(asked) and time.monotonic() < until:
        for each, records in consumer.poll(timeout_ms=100).items():
            found.setdefault((each.topic, each.partition), records[0].timestamp * 1000)
            consumer.pause(each)
    return found


def _admin(options: dict[str, Any]) -> KafkaAdminClient:
    return KafkaAdminClient(**options, bootstrap_timeout_ms=BOOTSTRAP_MS)


def _consumer(options: dict[str, Any]) -> KafkaConsumer:
    return KafkaConsumer(**options, enable_auto_commit=False, max_partition_fetch_bytes=FETCH_BYTES)
