"""Where the copies of topics are, and the settings of the topics that are created here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from streaming.settings import KafkaSettings

LARGEST_EVENT = 8 * 1024 * 1024
"""Bytes: the `kafka.producer.max.request.size` of deploy/agent/agent.properties."""

TOPIC_SETTINGS = {"cleanup.policy": "delete", "max.message.bytes": str(LARGEST_EVENT)}
"""Of each topic that is created here. Each record counts, also if its key repeats, as in a lane's
canaries."""

COPIES = 3
ACKNOWLEDGED_BY = 2
"""How many of `COPIES` copies must have a record before it counts as written."""


@dataclass(frozen=True, slots=True)
class PartitionCopies:
    """A partition: its number, how many copies it has, how many are in sync, whether it is led."""

    number: int
    copies: int
    in_sync: int
    is_led: bool


@dataclass(frozen=True, slots=True)
class TopicCopies:
    """The number of brokers, and the partitions of topics."""

    brokers: int
    topics: dict[str, tuple[PartitionCopies, ...]]


def copies_of(admin: KafkaAdminClient, topics: Iterable[str]) -> TopicCopies:
    """The copies of topics that exist. Raises the client's errors."""
    found = {
        each["name"]: tuple(
            PartitionCopies(
                one["partition_index"],
                len(one["replica_nodes"]),
                len(one["isr_nodes"]),
                one["leader_id"] >= 0,
            )
            for one in sorted(each["partitions"], key=lambda one: one["partition_index"])
        )
        for each in admin.describe_topics(list(topics))
    }
    return TopicCopies(len(admin.describe_cluster()["brokers"]), found)


BROKERS_OWN = -1
"""Instead of a number: as the broker's settings say."""


def create(admin: KafkaAdminClient, topics: Iterable[str], settings: KafkaSettings) -> None:
    """Create topics: the agents' with `kafka.partitions`. Raises the client's errors.

    A record counts as written once two of three copies have it. With fewer than three brokers the
    broker's defaults decide: two copies would stop all writing while one broker is down.
    """
    copies, configs = BROKERS_OWN, TOPIC_SETTINGS
    live = [each for each in admin.describe_cluster()["brokers"] if not each.get("is_fenced")]
    if len(live) >= COPIES:
        copies, configs = COPIES, configs | {"min.insync.replicas": str(ACKNOWLEDGED_BY)}
    partitions = {settings.topic_prefix: settings.partitions}
    admin.create_topics(
        [
            NewTopic(each, partitions.get(each, BROKERS_OWN), copies, topic_configs=configs)
            for each in topics
        ]
    )
