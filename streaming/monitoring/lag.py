"""Kafka lag by topic and partition: in records, and in seconds."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Protocol

from checkpoints.bookmarks import Offsets
from checkpoints.clock import to_micros
from reconcilers.errors import Retryable
from reconcilers.model import Micros
from streaming.monitoring.metrics import Metrics


class TopicEnds(Protocol):
    """Where topics end; `streaming.topics.Watcher` is the real one."""

    def end_offsets(self, topics: Iterable[str]) -> Mapping[str, Mapping[int, int]]:
        """The offset after the last record, by topic and partition. Raises `Retryable`."""


class LagWatch:
    """Measures how far the stream is behind the ends of its topics."""

    def __init__(self, watcher: TopicEnds, topics: tuple[str, ...], metrics: Metrics) -> None:
        self._watcher = watcher
        self._topics = topics
        self._metrics = metrics
        self._ends: dict[tuple[str, int], deque[tuple[float, int]]] = defaultdict(deque)
        self._lag: Micros = 0

    def lag(self) -> Micros:
        """The longest lag as last measured, µs."""
        return self._lag

    def measure(self, read_up_to: Offsets) -> float:
        """Show the lag behind these offsets; the longest, in seconds.

        In seconds: how long ago a topic had already reached an end that is not read yet. An
        unreachable broker leaves the last one shown.
        """
        now = time.monotonic()
        try:
            ends = self._watcher.end_offsets(self._topics)
        except Retryable:
            return self._longest(now)
        for topic, partitions in ends.items():
            for partition, end in partitions.items():
                read = read_up_to.get(topic, {}).get(partition, 0)
                unread = self._ends[topic, partition]
                unread.append((now, end))
                while unread and unread[0][1] <= read:
                    unread.popleft()
                seconds = now - unread[0][0] if unread else 0.0
                self._metrics.lag_records.labels(topic, partition).set(max(end - read, 0))
                self._metrics.lag_seconds.labels(topic, partition).set(seconds)
        return self._longest(now)

    def _longest(self, now: float) -> float:
        since = (now - unread[0][0] for unread in self._ends.values() if unread)
        longest = max(since, default=0.0)
        self._lag = to_micros(longest)
        return longest
