"""Whether the agents report the writes of tables with user-defined types."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Event
from typing import Any, Protocol

from checkpoints.bookmarks import Offsets, Place
from checkpoints.clock import now_micros
from reconcilers.declared.family import Family, Schema
from reconcilers.declared.unheard import (
    MINUTE,
    RowWrite,
    TableHeard,
    comparable,
    of_user_types,
    timed_column,
)
from reconcilers.words.errors import Refused, Retryable
from reconcilers.words.model import SECOND, Micros
from streaming.monitoring.metrics import Metrics

EVERY_S = 600.0
RECORDS = 20_000
"""Most records of a partition that are read for one table."""

log = logging.getLogger("reconciler")


class WritesRead(Protocol):
    """`streaming.tables.RecentWrites` is the real one."""

    def captured_since(self) -> dict[str, Micros]:
        """By captured table, when (µs) its settings were last changed."""

    def sample(self, table: str, key: str, column: str) -> list[RowWrite]:
        """Some rows, with the write time of a column."""


class KeyedEvent(Protocol):
    """A record of Kafka."""

    @property
    def key(self) -> bytes | None:
        """The key of the row that has changed, as JSON."""

    @property
    def value(self) -> bytes | None:
        """The event, as JSON."""


class EventsRead(Protocol):
    """`streaming.topics.Watcher` is the real one."""

    def offsets_at(self, topics: Iterable[str], at: Micros) -> dict[Place, int]:
        """The first offset that was written at this time (µs) or later, or the end."""

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        """The offset after the last record, by topic and partition."""

    def records(self, topic: str, partition: int, begin: int, end: int) -> Iterable[KeyedEvent]:
        """Records from offset ``begin`` to before ``end``."""


@dataclass(frozen=True, slots=True)
class UnheardTables:
    """Compares late writes of ``keyspace`` with the events in ``topic``, that of the agents."""

    writes: WritesRead
    events: EventsRead
    keyspace: str
    topic: str

    def compared(
        self, families: Sequence[Family], schema: Schema, now: Micros
    ) -> Iterator[TableHeard]:
        """Each table of which it is known; ``now`` is µs. Raises `Retryable`, `Refused`.

        Nothing is known without a late write, or before an event came that is a minute newer.
        """
        captured = self.writes.captured_since()
        for table, key in of_user_types(families, schema).items():
            column = timed_column(schema[table], key)
            if table not in captured or column is None:
                continue
            sample = self.writes.sample(table, key, column)
            some = comparable(sample, captured[table], now)
            unheard = self._unheard(table, key, some)
            if some and unheard is not None:
                yield TableHeard(table, len(some), unheard)

    def _unheard(self, table: str, key: str, some: Sequence[RowWrite]) -> int | None:
        """Of how many of these writes no event came; None if one may still come."""
        if not some:
            return None
        waiting, newest = {each.key for each in some}, some[-1].at
        is_past = False
        for record in self._since(some[0].at - 10 * SECOND):
            source = _source(record)
            is_past = is_past or int(source.get("ts_us") or 0) > newest + MINUTE
            if (source.get("keyspace"), source.get("table")) == (self.keyspace, table):
                waiting.discard(str(_object(record.key).get(key)))
            if not waiting:
                return 0
        return len(waiting) if is_past else None

    def _since(self, at: Micros) -> Iterator[KeyedEvent]:
        begins = self.events.offsets_at([self.topic], at)
        ends = self.events.end_offsets([self.topic])
        for (topic, partition), begin in begins.items():
            end = ends[topic][partition]
            yield from islice(self.events.records(topic, partition, begin, end), RECORDS)


def _source(record: KeyedEvent) -> dict[str, Any]:
    source = _object(record.value).get("source")
    return source if isinstance(source, dict) else {}


def _object(text: bytes | None) -> dict[str, Any]:
    try:
        told = json.loads(text or b"{}")
    except (ValueError, RecursionError):  # a dead letter of the stream
        return {}
    return told if isinstance(told, dict) else {}


@dataclass(frozen=True, slots=True)
class UnheardWatch:
    """Compares from time to time, in a thread of its own, and shows each table in a metric."""

    tables: UnheardTables
    families: Sequence[Family]
    schema: Schema
    metrics: Metrics

    def run(self, stop: Event) -> None:
        """Measure until ``stop`` is set."""
        self.measure()
        while not stop.wait(EVERY_S):
            self.measure()

    def measure(self) -> None:
        """Show for each table whether no event of its writes comes; what is not known stays."""
        try:
            for each in self.tables.compared(self.families, self.schema, now_micros()):
                self.metrics.not_captured.labels(each.table).set(each.unheard > 0)
        except (Retryable, Refused) as failed:
            log.info("it is not known whether all tables are captured: %s", failed)
