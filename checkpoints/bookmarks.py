"""Bookmarks: the *settled* offsets of each topic, all that a fresh start needs (the port).

An offset is settled when its record and all before it in its partition have been looked at. Every
effect is then stored: findings in the journal, counts of changes, and dead letters. A stream that
starts at its newest bookmark skips nothing, and repeats only what a crash interrupted.
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
"""A partition: the topic's name and the partition's number."""

Positions = Mapping[Place, int]
"""The next offset to read, by partition."""

OffsetRanges = Mapping[Place, tuple[int, int]]
"""The first offset of a range and the offset after its last, by partition."""


@dataclass(frozen=True, slots=True)
class KafkaIds:
    """The ids that distinguish topics of one name, and clusters at one address."""

    cluster: str = ""
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """The offsets up to which one stream has settled its topics.

    ``ids`` are those of the topics when they were read; empty if unknown. ``heard`` has by lane how
    far canaries were received without a gap. `Bookmarks.record` sets ``recorded_at`` (µs), which
    only increases.
    """

    stream: str
    settled: Positions
    ids: KafkaIds = KafkaIds()
    recorded_at: Micros = 0
    name: str = ""
    heard: Mapping[Lane, Reached] = field(default_factory=dict)


class Bookmarks(Protocol):
    """Implementations: `checkpoints.cassandra.CassandraBookmarks`, the fake `MemoryBookmarks`."""

    def record(self, bookmark: Bookmark) -> Bookmark:
        """Store it as the stream's newest, by one writer only; return it with its time."""

    def newest(self, stream: str) -> Bookmark | None:
        """The bookmark recorded last, None if the stream has none."""

    def name(self, bookmark: Bookmark, name: str) -> Bookmark:
        """Store it permanently under a name; an older one of that name is replaced."""

    def named(self, stream: str, name: str) -> Bookmark | None:
        """The bookmark with this name, None if there is none."""

    def all_named(self, stream: str) -> tuple[Bookmark, ...]:
        """The bookmarks with a name, ordered by name."""

    def forget(self, stream: str, name: str) -> None:
        """Remove the bookmark with this name, if there is one."""


def after(last: Micros | None, now: Micros) -> Micros:
    """A recording time (µs): ``now``, but always later than ``last``."""
    return now if last is None else max(now, last + 1)


def flat(offsets: Offsets) -> dict[Place, int]:
    """The offsets by partition."""
    return {
        (topic, number): offset
        for topic, partitions in offsets.items()
        for number, offset in partitions.items()
    }


def numbered(told: Mapping[str, Mapping[str, int]]) -> dict[str, dict[int, int]]:
    """Offsets from JSON, whose keys are text: the partitions become numbers."""
    return {
        topic: {int(number): offset for number, offset in partitions.items()}
        for topic, partitions in told.items()
    }


def nested(positions: Positions) -> dict[str, dict[int, int]]:
    """The positions by topic, then by partition."""
    found: dict[str, dict[int, int]] = {}
    for (topic, number), offset in positions.items():
        found.setdefault(topic, {})[number] = offset
    return found
