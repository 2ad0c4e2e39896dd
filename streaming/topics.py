"""Kafka: where the events come from, the suspects and dead letters that we publish, offsets, lag.

Producers are made once per process, so each Spark worker keeps its own.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import CoordinatorNotAvailableError, KafkaError, TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata, TopicPartition

from checkpoints.bookmarks import KafkaIds, Offsets, Place, nested
from reconcilers.errors import Unreachable
from reconcilers.family import Family
from reconcilers.key import named
from reconcilers.model import PUBLISHED, Wake
from streaming.settings import KafkaSettings, Settings

log = logging.getLogger("reconciler")

NO_ID = "00000000-0000-0000-0000-000000000000"
"""Of a topic at a broker that has no ids, or does not know the topic right now."""

BOOTSTRAP_MS = 10_000
"""How long a broker may take to answer at first, and to tell of a topic that it made, ms."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record as Kafka holds it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def own_topics(settings: KafkaSettings) -> tuple[str, ...]:
    """The topics that the reconciler publishes to."""
    return (settings.suspects_topic, settings.observe_suspects_topic, settings.dead_letters_topic)


def event_topics(settings: Settings, family: Family) -> tuple[str, ...]:
    """The agent's topics of a family's tables."""
    prefix = f"{settings.kafka.topic_prefix}.{settings.cassandra.keyspace}"
    return tuple(f"{prefix}.{table}" for table in family.wakes_on)


@cache
def _producer(bootstrap_servers: str) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=bootstrap_servers.split(","),
        acks="all",
        retries=10,
        linger_ms=5,
        max_request_size=8 * 1024 * 1024,
    )


def _send(
    settings: KafkaSettings, topic: str, values: Iterable[tuple[bytes | None, bytes | None]]
) -> None:
    """Send and wait until all are acknowledged. Raises `Unreachable`."""
    try:
        producer = _producer(settings.bootstrap_servers)
        sent = [producer.send(topic, key=key, value=value) for key, value in values]
        for each in sent:
            each.get(timeout=60)
    except KafkaError as failed:
        raise Unreachable(f"Kafka at {settings.bootstrap_servers}: {failed}") from failed


def publish_wakes(
    settings: KafkaSettings, topic: str, family: Family, wakes: Iterable[Wake]
) -> None:
    """Publish keys to be looked at again, one delay after Spark reads them (step 7)."""
    _send(settings, topic, (_suspect(family, wake) for wake in wakes))


def _suspect(family: Family, wake: Wake) -> tuple[bytes, bytes]:
    ids = named(family.named, (wake.key[0], wake.source, *wake.key[1:]))
    told = {name: getattr(wake, name) for name in PUBLISHED}
    value = json.dumps({"family": family.name, "wake": {**ids, **told}}).encode()
    return "/".join(str(part) for part in wake.key).encode(), value


def publish_dead_letters(settings: KafkaSettings, letters: Iterable[Mapping[str, Any]]) -> None:
    """Keep what cannot be examined: topic, partition, offset, reason, the record's beginning."""
    _send(settings, settings.dead_letters_topic, (_dead_letter(letter) for letter in letters))


def publish_again(settings: KafkaSettings, records: Iterable[Record]) -> None:
    """Publish records once more, unchanged, to the topics that they came from."""
    for record in records:
        _send(settings, record.topic, ((record.key, record.value),))


def _dead_letter(letter: Mapping[str, Any]) -> tuple[bytes, bytes]:
    raw = bytes(letter["raw"] or b"").decode("utf-8", "replace")
    place = {name: letter[name] for name in ("topic", "partition", "offset", "reason")}
    key = f"{letter['topic']}/{letter['partition']}/{letter['offset']}"
    return key.encode(), json.dumps({**place, "record": raw}).encode()


def stream_options(settings: KafkaSettings, topics: Iterable[str]) -> dict[str, str]:
    """Options of Spark's Kafka source, by which the stream learns of new offsets."""
    return {
        **_spark_options(settings),
        "subscribe": ",".join(topics),
        "maxOffsetsPerTrigger": str(settings.max_offsets_per_batch),
    }


def batch_options(
    settings: KafkaSettings, ranges: Mapping[Place, tuple[int, int]]
) -> dict[str, str]:
    """Options of a batch read of these ranges: first offset, and the one after the last.

    The group is not the operator's: nothing is committed to it. It lets Spark keep its consumers.
    """
    begin = nested({place: first for place, (first, _) in ranges.items()})
    end = nested({place: last for place, (_, last) in ranges.items()})
    return {
        **_spark_options(settings),
        "kafka.group.id": f"{settings.group}.reader",
        "assign": json.dumps({topic: sorted(each) for topic, each in begin.items()}),
        "startingOffsets": json.dumps(begin),
        "endingOffsets": json.dumps(end),
    }


def _spark_options(settings: KafkaSettings) -> dict[str, str]:
    """What both kinds of reading ask of Kafka.

    It asks only for records that are there, and after each fetch for the partition's bounds, over
    the connection where the broker still holds the next fetch open: that one must not wait long.
    """
    return {
        "kafka.bootstrap.servers": settings.bootstrap_servers,
        "failOnDataLoss": "true",
        "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
        "kafka.fetch.max.wait.ms": "10",
    }


class Watcher:
    """Reads positions of topics for lag and commits offsets to the operator's consumer group."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        servers = settings.bootstrap_servers.split(",")
        try:
            self._admin = KafkaAdminClient(
                bootstrap_servers=servers, bootstrap_timeout_ms=BOOTSTRAP_MS
            )
            self._consumer = KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False)
        except KafkaError as failed:
            raise Unreachable(
                f"no Kafka broker answers at {settings.bootstrap_servers}: is kafka."
                "bootstrap_servers right?"
            ) from failed

    def create(self, topics: Iterable[str]) -> None:
        """Create those of the topics that do not exist, with the broker's own defaults.

        Returns when the broker tells of them, which it does some time after it made them. Raises
        `Unreachable`.
        """
        absent = self.missing(topics)
        try:
            if absent:
                self._admin.create_topics([NewTopic(topic, -1, -1) for topic in absent])
        except TopicAlreadyExistsError:
            log.debug("another process made a topic of %s at the same time", absent)
        except KafkaError as failed:
            raise Unreachable(f"creating topics {', '.join(absent)}: {failed}") from failed
        until = time.monotonic() + BOOTSTRAP_MS / 1000
        while unknown := self.missing(absent):
            if time.monotonic() > until:
                raise Unreachable(f"created, but not told of by Kafka: {', '.join(unknown)}")
            time.sleep(0.1)

    def partitions(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions."""
        return sorted(self._consumer.partitions_for_topic(topic) or ())

    def missing(self, topics: Iterable[str]) -> list[str]:
        """Those of the topics that do not exist."""
        existing = self._consumer.topics()
        return [topic for topic in topics if topic not in existing]

    def ids(self, topics: Iterable[str]) -> KafkaIds:
        """What tells these topics, and the cluster, from others of the same name."""
        try:
            cluster = self._admin.describe_cluster()["cluster_id"]
            described = self._admin.describe_topics(list(topics))
        except KafkaError as failed:
            raise Unreachable(f"the ids of topics: {failed}") from failed
        known = {each["name"]: str(each["topic_id"]) for each in described if each.get("topic_id")}
        return KafkaIds(str(cluster), {name: each for name, each in known.items() if each != NO_ID})

    def end_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """The offset after the last record, by topic and partition."""
        return self._positions(topics, self._consumer.end_offsets)

    def beginning_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """The oldest offset that is still kept, by topic and partition."""
        return self._positions(topics, self._consumer.beginning_offsets)

    def commit(self, group: str, offsets: Offsets) -> None:
        """Commit offsets to a consumer group, for the operator's existing lag tools."""
        positions = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
            for topic, partitions in offsets.items()
            for partition, offset in partitions.items()
        }
        for _ in range(20):
            try:
                self._admin.alter_group_offsets(group, positions)
            except CoordinatorNotAvailableError:  # a new broker, at the first call
                time.sleep(0.5)
            except KafkaError as failed:
                raise Unreachable(f"offsets of group {group}: {failed}") from failed
            else:
                return

    def committed(self, group: str) -> Offsets:
        """The offsets that a consumer group committed; empty when it never did."""
        try:
            found = self._admin.list_group_offsets({group: None})[group]
        except CoordinatorNotAvailableError:  # a broker that never had any group
            return {}
        except KafkaError as failed:
            raise Unreachable(f"offsets of group {group}: {failed}") from failed
        offsets: dict[str, dict[int, int]] = {}
        for partition, position in found.items():
            offsets.setdefault(partition.topic, {})[partition.partition] = position.offset
        return offsets

    def retention(self, topics: Iterable[str]) -> dict[str, int | None]:
        """How long records of each topic are kept, ms; None without a limit."""
        asked = [
            ConfigResource(ConfigResourceType.TOPIC, each, ["retention.ms"]) for each in topics
        ]
        try:
            told = self._admin.describe_configs(asked, config_filter=ConfigFilterType.ALL)
        except KafkaError as failed:
            raise Unreachable(f"the settings of topics: {failed}") from failed
        kept = {
            topic: int(config["retention.ms"]["value"])
            for topic, config in told.get("topic", {}).items()
            if "retention.ms" in config
        }
        return {topic: (None if ms < 0 else ms) for topic, ms in kept.items()}

    def records(self, topic: str, partition: int, begin: int, end: int) -> Iterator[Record]:
        """Records from offset ``begin`` to before ``end``; none when Kafka dropped ``begin``."""
        place = TopicPartition(topic, partition)
        try:
            self._consumer.assign([place])
            self._consumer.seek(place, begin)
            while self._consumer.position(place) < end:
                for each in self._consumer.poll(timeout_ms=1000).get(place, ()):
                    if begin <= each.offset < end:
                        yield Record(topic, partition, each.offset, each.key, each.value)
        except KafkaError as failed:
            raise Unreachable(f"reading topic {topic}: {failed}") from failed

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()
        self._admin.close()

    def _positions(self, topics: Iterable[str], ask: Any) -> dict[str, dict[int, int]]:
        try:
            partitions = [
                TopicPartition(topic, number)
                for topic in topics
                for number in self.partitions(topic)
            ]
            found: dict[str, dict[int, int]] = {}
            for partition, offset in ask(partitions).items():
                found.setdefault(partition.topic, {})[partition.partition] = offset
        except KafkaError as failed:
            raise Unreachable(f"positions of topics: {failed}") from failed
        return found
