"""Few records, read at once in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from kafka import KafkaConsumer
from kafka.structs import TopicPartition

from checkpoints.bookmarks import OffsetRanges
from reconcilers.words.errors import Unreachable
from streaming.settings import KafkaSettings
from streaming.topics.clients import Renewed
from streaming.topics.kafka_errors import translated
from streaming.topics.record import Record

WITHIN = 2.0
"""Seconds in which few records arrive if the broker is well."""
FETCH_BYTES = 1_048_576


def _consumer(options: dict[str, Any]) -> KafkaConsumer:
    return KafkaConsumer(**options, enable_auto_commit=False, max_partition_fetch_bytes=FETCH_BYTES)


class FewRecords:
    """A consumer of its own, made at the first read. Not shared between threads."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._consumer: Renewed[KafkaConsumer] | None = None

    def read(self, ranges: OffsetRanges) -> Iterator[Record]:
        """The records of these ranges: first offset, and the one after the last, by partition.

        Raises `Unreachable` unless all arrive within `WITHIN`.
        """
        with translated("few records of Kafka"):
            yield from self._read(self._made(), ranges)

    def _made(self) -> KafkaConsumer:
        if self._consumer is None:
            self._consumer = Renewed(self._settings, _consumer)
        return self._consumer.now()

    @staticmethod
    def _read(consumer: KafkaConsumer, ranges: OffsetRanges) -> Iterator[Record]:
        ends = {TopicPartition(*place): end for place, (_, end) in ranges.items()}
        consumer.assign(list(ends))
        for place, (begin, _) in ranges.items():
            consumer.seek(TopicPartition(*place), begin)
        until = time.monotonic() + WITHIN
        while any(consumer.position(each) < end for each, end in ends.items()):
            if time.monotonic() > until:
                raise Unreachable("few records did not come soon")
            for each, records in consumer.poll(timeout_ms=100).items():
                for one in records:
                    if one.offset < ends[each]:
                        yield Record(one.topic, one.partition, one.offset, one.key, one.value)
