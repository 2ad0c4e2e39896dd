"""Kafka lag by topic and partition, in records and in seconds: for metrics and for `status`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client import Gauge

from checkpoints.bookmarks import Offsets, Place, flat
from checkpoints.clock import now_micros, to_micros, to_seconds
from reconcilers.words.errors import Retryable
from reconcilers.words.model import Micros
from streaming.monitoring.metrics import Metrics

RETENTION_EVERY = to_micros(600)
"""How often (µs) the retention of topics is read."""
FOR_EVER = -1


class KafkaRecords(Protocol):
    """Ends of topics and ages of records; `streaming.topics.Watcher` is the real one."""

    def end_offsets(self, topics: Iterable[str]) -> Mapping[str, Mapping[int, int]]:
        """The offset after the last record, by topic and partition. Raises `Retryable`."""

    def configured(self, topics: Iterable[str], name: str) -> Mapping[str, str]:
        """This setting of each topic, as far as it may be read. Raises `Retryable`."""

    def written_at(self, places: Mapping[Place, int]) -> Mapping[Place, Micros]:
        """When (µs) the first record from each offset on was written; may be incomplete.

        Raises `Retryable`.
        """


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """What is not read yet of one partition.

    ``read`` is the offset up to which it is read, None if unknown. ``oldest`` is when the first
    record after it was written (µs), None if there is none or it is unknown.
    """

    topic: str
    partition: int
    end: int
    read: int | None
    oldest: Micros | None = None

    @property
    def records(self) -> int | None:
        """How many records wait; None if unknown."""
        return None if self.read is None else max(self.end - self.read, 0)

    def seconds(self, now: Micros) -> float | None:
        """The age of the oldest record that waits; 0 if none waits, None if unknown."""
        if self.records == 0:
            return 0.0
        return None if self.oldest is None else max(to_seconds(now - self.oldest), 0.0)


def lags(kafka: KafkaRecords, topics: Iterable[str], read: Offsets) -> list[PartitionLag]:
    """How far each partition of the topics is read. Raises `Retryable`."""
    known, ends = flat(read), flat(kafka.end_offsets(topics))
    waiting = {place: known[place] for place, end in ends.items() if known.get(place, end) < end}
    oldest = kafka.written_at(waiting) if waiting else {}
    return [
        PartitionLag(*place, end, known.get(place), oldest.get(place))
        for place, end in sorted(ends.items())
    ]


def longest(found: Iterable[PartitionLag], now: Micros) -> float | None:
    """The longest lag in seconds; None if none is known."""
    known = [seconds for each in found if (seconds := each.seconds(now)) is not None]
    return max(known, default=None)


@dataclass(slots=True)
class LagWatch:
    """Shows how far the stream is behind the ends of its topics, and how long these are kept."""

    kafka: KafkaRecords
    topics: tuple[str, ...]
    metrics: Metrics
    clock: Callable[[], Micros] = now_micros
    _lags: list[PartitionLag] = field(default_factory=list)
    _kept_at: Micros | None = None

    def measure(self, read_up_to: Offsets) -> None:
        """Show the lag behind these offsets. Without a broker, the last known lag grows older."""
        with suppress(Retryable):
            self._lags = lags(self.kafka, self.topics, read_up_to)
        now = self.clock()
        if self._kept_at is None or abs(now - self._kept_at) > RETENTION_EVERY:
            self._show_retention(now)
        for lag in self._lags:
            self._show(self.metrics.lag_records, lag, lag.records)
            self._show(self.metrics.lag_seconds, lag, lag.seconds(now))

    def _show_retention(self, now: Micros) -> None:
        """Show how long each topic keeps records; nothing if for ever, or if it is not known."""
        self._kept_at = now
        with suppress(Retryable):
            kept = self.kafka.configured(self.topics, "retention.ms")
            for topic in self.topics:
                ms = int(kept.get(topic, FOR_EVER))
                if ms >= 0:
                    self.metrics.retention.labels(topic).set(ms / 1000)
                else:
                    self.metrics.retention.remove(topic)

    def _show(self, metric: Gauge, lag: PartitionLag, value: float | None) -> None:
        place = (lag.topic, str(lag.partition))
        if value is None:
            metric.remove(*place)
        else:
            metric.labels(*place).set(value)
