"""A slice of canaries alone, read in the driver: the workers would have nothing to look at.

On an idle installation every slice is one. A Spark job takes half a second of CPU, this some
milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from checkpoints.bookmarks import OffsetRanges
from checkpoints.clock import MICROS_A_MILLI
from reconcilers.capture.frontier import CANARY_TABLE, Canary, Echo, node_of
from reconcilers.words.errors import Retryable

MOST = 1_000
"""Most records of such a slice; a larger one is left to the workers."""
NUMBERS = ("number", "previous", "idle_us", "written_ms", "partitions")


class KafkaRecord(Protocol):
    """A record as Kafka holds it; `streaming.topics.Record` is the real one."""

    @property
    def topic(self) -> str:
        """Its topic."""

    @property
    def partition(self) -> int:
        """Its partition."""

    @property
    def offset(self) -> int:
        """Its offset."""

    @property
    def key(self) -> bytes | None:
        """Its key."""

    @property
    def value(self) -> bytes | None:
        """Its value."""


@dataclass(frozen=True, slots=True)
class CanariesAlone:
    """Recognises slices that hold canaries only. ``records`` reads ranges of offsets.

    ``topic`` is the agent's, ``keyspace`` that of the canaries; ``astray`` is
    `streaming.topics.came_astray`.
    """

    records: Callable[[OffsetRanges], Iterable[KafkaRecord]]
    topic: str
    keyspace: str
    astray: Callable[[str, int, int, int], int]

    def heard(self, ranges: OffsetRanges) -> list[tuple[int, Echo]] | None:
        """The canaries with their offsets; None if there is, or may be, anything else."""
        number = sum(end - begin for begin, end in ranges.values())
        if number > MOST or any(topic != self.topic for topic, _ in ranges):
            return None
        found: list[tuple[int, Echo]] = []
        try:
            for record in self.records(ranges):
                echo = self._echo(record)
                if echo is None:
                    return None
                found.append((record.offset, echo))
        except Retryable:
            return None
        return found if len(found) == number else None

    def _echo(self, record: KafkaRecord) -> Echo | None:
        """The canary of an event, as `pipeline.sources.echo` reads it; None of anything else."""
        try:
            key, value = json.loads(record.key or b""), json.loads(record.value or b"")
            source = value["source"]
            if (source["keyspace"], source["table"]) != (self.keyspace, CANARY_TABLE):
                return None
            return self._echo_of(key, value, record)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None  # the workers decode it

    def _echo_of(self, key: Any, value: Any, record: KafkaRecord) -> Echo | None:
        after = {name: value["after"][name]["value"] for name in (*NUMBERS, "steady")}
        place, lane, numbers = key["place"], key["lane"], [after[name] for name in NUMBERS]
        if value["op"] not in {"i", "u"} or {*map(type, (lane, *numbers))} != {int}:
            return None
        if not isinstance(place, str):
            return None
        number, previous, idle, written_ms, partitions = numbers
        steady, at = after["steady"] is True, written_ms * MICROS_A_MILLI
        canary = Canary(node_of(place), number, previous, steady, idle, at)
        astray = self.astray(place, lane, partitions, record.partition)
        return Echo(canary, record.topic, record.partition, astray)
