"""Kafka lag by topic and partition: in records, and in seconds."""

from __future__ import annotations

import time
from collections import defaultdict, deque

from checkpoints.bookmarks import Offsets
from reconcilers.errors import Retryable
from streaming.monitoring.metrics import Metrics
from streaming.topics import Watcher


class LagWatch:
    """Measures how far the stream is behind the ends of its topics."""

    def __init__(self, watcher: Watcher, topics: tuple[str, ...], metrics: Metrics) -> None:
        self._watcher = watcher
        self._topics = topics
        self._metrics = metrics
        self._ends: dict[tuple[str, str], deque[tuple[float, int]]] = defaultdict(deque)

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
                read = read_up_to.get(topic, {}).get(int(partition), 0)
                unread = self._ends[topic, partition]
                unread.append((now, end))
                while unread and unread[0][1] <= read:
                    unread.popleft()
                seconds = now - unread[0][0] if unread else 0.0
                self._metrics.lag_records.labels(topic, partition).set(max(end - read, 0))
                self._metrics.lag_seconds.labels(topic, partition).set(seconds)
        return self._longest(now)

    def _longest(self, now: float) -> float:
        return max((now - unread[0][0] for unread in self._ends.values() if unread), default=0.0)
