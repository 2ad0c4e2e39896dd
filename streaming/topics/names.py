"""Which topics a family is read from, which are ours, and how Spark is to read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from checkpoints.bookmarks import Place, nested
from reconcilers.declared.family import Family
from streaming.settings import KafkaSettings, Mode, Settings

SHARED_SUSPECTS = {
    Mode.REPAIR: "reconciler.suspects",
    Mode.OBSERVE: "reconciler.suspects.observe",
}
SHARED_DEAD_LETTERS = "reconciler.dead-letters"
SHARED_GROUP = "reconciler"
"""The defaults of before version 0.2, which named no keyspace: what is left there is read, too."""


def shared_suspects(
    settings: Settings, mode: Mode, missing: Callable[[Iterable[str]], list[str]]
) -> tuple[str, ...]:
    """The topic that every installation published keys to before version 0.2, if it is there.

    Only where our own is named as by default: else it was named before, too.
    """
    by_default = KafkaSettings().of(settings.cassandra.keyspace)
    if suspects_of(settings.kafka, mode) != suspects_of(by_default, mode):
        return ()
    shared = SHARED_SUSPECTS[mode]
    return () if missing([shared]) else (shared,)


def shared_dead_letters(settings: Settings) -> tuple[str, ...]:
    """The topic of every installation's dead letters of before version 0.2, in the same way."""
    by_default = KafkaSettings().of(settings.cassandra.keyspace)
    ours = settings.kafka.dead_letters_topic
    return (SHARED_DEAD_LETTERS,) if ours == by_default.dead_letters_topic else ()


def suspects_of(settings: KafkaSettings, mode: Mode) -> str:
    """The topic of keys that a stream in this mode publishes, and reads again."""
    return settings.suspects_topic if mode is Mode.REPAIR else settings.observe_suspects_topic


def own_topics(settings: KafkaSettings) -> tuple[str, ...]:
    """The topics that the reconciler publishes to."""
    return (settings.suspects_topic, settings.observe_suspects_topic, settings.dead_letters_topic)


def event_topics(
    settings: Settings, family: Family, missing: Callable[[Iterable[str]], list[str]]
) -> tuple[str, ...]:
    """The agent's one topic, and those of a family's tables that are still there.

    Before version 0.2 the agent wrote a topic for each table: what is left there is read, too.
    ``missing`` says which topics do not exist (`Watcher.missing`).
    """
    of_tables = table_topics(settings, family)
    gone = set(missing(of_tables))
    return (settings.kafka.topic_prefix, *(each for each in of_tables if each not in gone))


def table_topics(settings: Settings, family: Family) -> tuple[str, ...]:
    """The names that the topics of a family's tables had before version 0.2."""
    prefix = f"{settings.kafka.topic_prefix}.{settings.cassandra.keyspace}"
    return tuple(f"{prefix}.{table}" for table in family.wakes_on)


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
