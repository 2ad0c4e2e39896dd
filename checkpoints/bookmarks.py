"""Bookmarks: up to where each topic has been *settled*. All that a fresh start needs.

An offset is settled when its record, and every one before it in its partition, has been looked at:
what became of it is in the journal, the counters were told, what could not be decoded is a dead
letter. A stream that begins at its newest bookmark looks at nothing twice but what a crash
interrupted, and skips nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from reconcilers.capture.chain import Reached
from reconcilers.capture.frontier import Lane
from reconcilers.words.model import Micros

Offsets = Mapping[str, Mapping[int, int]]
"""The next offset to read, by topic and partition."""

Place = tuple[str, int]
"""A partition: the topic's name and the number."""

Positions = Mapping[Place, int]
"""The next offset to read, by partition."""


@dataclass(frozen=True, slots=True)
class KafkaIds:
    """What tells a topic from another of its name, and a cluster from another at its address."""

    cluster: str = ""
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Up to where one stream has settled its topics.

    ``ids`` are those that the topics had when they were read; empty where they are not known.
    ``heard`` says how far each lane of canaries was heard without a gap.
    ``recorded_at`` (µs) is given by `Bookmarks.record`; it only goes up.
    """

    stream: str
    settled: Positions
    ids: KafkaIds = KafkaIds()
    recorded_at: Micros = 0
    name: str = ""
    heard: Mapping[Lane, Reached] = field(default_factory=dict)


class Bookmarks(Protocol):
    """Implementations: `CassandraBookmarks` in `checkpoints.cassandra`, `MemoryBookmarks`."""

    def record(self, bookmark: Bookmark) -> Bookmark:
        """Keep it as the stream's newest (one writer a stream); returns it with its time."""

    def newest(self, stream: str) -> Bookmark | None:
        """The bookmark recorded last, None if the stream has recorded none."""

    def name(self, bookmark: Bookmark, name: str) -> Bookmark:
        """Keep it under a name, for good; an older one of that name is replaced."""

    def named(self, stream: str, name: str) -> Bookmark | None:
        """The bookmark with this name, None when there is none."""

    def all_named(self, stream: str) -> tuple[Bookmark, ...]:
        """Those with a name, by name."""

    def forget(self, stream: str, name: str) -> None:
        """Remove the one with this name; nothing changes where there is none."""


def after(last: Micros | None, now: Micros) -> Micros:
    """A recording time: now, but later than the last whatever the clock does."""
    return now if last is None else max(now, last + 1)


def flat(offsets: Offsets) -> dict[Place, int]:
    """Offsets by partition."""
    return {
        (topic, number): offset
        for topic, partitions in offsets.items()
        for number, offset in partitions.items()
    }


def numbered(told: Mapping[str, Mapping[str, int]]) -> dict[str, dict[int, int]]:
    """Offsets as they come from JSON, which has only text as keys: partitions are numbers."""
    return {
        topic: {int(number): offset for number, offset in partitions.items()}
        for topic, partitions in told.items()
    }


def nested(positions: Positions) -> dict[str, dict[int, int]]:
    """Positions by topic, then by partition."""
    found: dict[str, dict[int, int]] = {}
    for (topic, number), offset in positions.items():
        found.setdefault(topic, {})[number] = offset
    return found
