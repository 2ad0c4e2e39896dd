"""The names of our topics, and the options with which Spark reads topics."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from checkpoints.bookmarks import OffsetRanges, nested
from reconcilers.words.errors import Misconfigured, Unreachable
from streaming.settings import KafkaSettings, Mode
from streaming.topics.clients import files_version, spark_options


def suspects_of(settings: KafkaSettings, mode: Mode) -> str:
    """The topic of keys that a stream in this mode publishes and reads again."""
    return settings.suspects_topic if mode is Mode.REPAIR else settings.observe_suspects_topic


def own_topics(settings: KafkaSettings) -> tuple[str, ...]:
    """The topics to which the reconciler publishes."""
    return (settings.suspects_topic, settings.observe_suspects_topic, settings.dead_letters_topic)


def stream_options(
    settings: KafkaSettings, topics: Iterable[str], folder: Path | None
) -> dict[str, str]:
    """Options of Spark's Kafka source, from which the stream reads new offsets.

    ``folder`` as of `clients.spark_options`. Raises `Unreachable`.
    """
    return {
        **_spark_options(settings, folder),
        "subscribe": ",".join(topics),
        "maxOffsetsPerTrigger": str(settings.max_offsets_per_batch),
    }


def batch_options(
    settings: KafkaSettings, ranges: OffsetRanges, folder: Path | None
) -> dict[str, str]:
    """Options of a batch read of these ranges: first offset, and the one after the last.

    ``folder`` as of `clients.spark_options`. Nothing is committed to its group, which is not the
    operator's. Spark keeps consumers by it, with the certificates and the password of their
    beginning: so it is another one when a file of these is replaced. Raises `Unreachable`.
    """
    version = [*files_version(settings)]
    begin = nested({place: first for place, (first, _) in ranges.items()})
    end = nested({place: last for place, (_, last) in ranges.items()})
    return {
        **_spark_options(settings, folder),
        "kafka.group.id": ".".join((settings.group, "reader", *version)),
        "assign": json.dumps({topic: sorted(each) for topic, each in begin.items()}),
        "startingOffsets": json.dumps(begin),
        "endingOffsets": json.dumps(end),
    }


def _spark_options(settings: KafkaSettings, folder: Path | None) -> dict[str, str]:
    """The options that both kinds of reading share.

    Spark reads only records that exist, and requests a partition's bounds after each fetch. The
    broker still holds the next fetch open on that connection, so that fetch must not wait long.

    Raises `Unreachable` if a file of `clients.spark_options` cannot be used: our own clients, which
    connect first, have used it, so it is being replaced.
    """
    try:
        login = spark_options(settings, folder)
    except Misconfigured as meanwhile:
        raise Unreachable(str(meanwhile)) from meanwhile
    return {
        **login,
        "failOnDataLoss": "true",
        "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
        "kafka.fetch.max.wait.ms": "10",
    }
