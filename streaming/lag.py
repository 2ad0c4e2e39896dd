"""Kafka lag by topic and partition: in records, and in seconds since it was caught up."""

from __future__ import annotations

import time

from checkpoints.bookmarks import Offsets
from reconcilers.errors import Retryable
from streaming.metrics import Metrics
from streaming.topics import Watcher


class LagWatch:
    """Measures how far the stream is behind the ends of its topics."""

    def __init__(self, watcher: Watcher, topics: tuple[str, ...], metrics: Metrics) -> None:
        self._watcher = watcher
        self._topics = topics
        self._metrics = metrics
        self._caught_up: dict[tuple[str, str], float] = {}

    def measure(self, read_up_to: Offsets) -> None:
        """Show the lag behind these offsets; an unreachable broker leaves the last one shown."""
        now = time.monotonic()
        try:
            ends = self._watcher.end_offsets(self._topics)
        except Retryable:
            return
        for topic, partitions in ends.items():
            for partition, end in partitions.items():
                records = max(end - read_up_to.get(topic, {}).get(int(partition), 0), 0)
                since = self._caught_up.setdefault((topic, partition), now)
                if records == 0:
                    self._caught_up[topic, partition] = since = now
                self._metrics.lag_records.labels(topic, partition).set(records)
                self._metrics.lag_seconds.labels(topic, partition).set(now - since)
