"""Whether change capture shows that users write: the records of the last minute."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from checkpoints.bookmarks import Offsets, Place
from reconcilers.capture.frontier import CANARY_TABLE, node_of
from reconcilers.words.iso import iso
from reconcilers.words.model import Micros
from streaming.settings import Settings
from streaming.topics import Record

MINUTE: Micros = 60_000_000


class RecentRecords(Protocol):
    """Records by their time; `streaming.topics.Watcher` is the real one."""

    def offsets_at(self, topics: Iterable[str], at: Micros) -> dict[Place, int]:
        """The first offset that was written at this time (µs) or later, or the end."""

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        """The offset after the last record, by topic and partition."""

    def records(self, topic: str, partition: int, begin: int, end: int) -> Iterable[Record]:
        """Records from offset ``begin`` to before ``end``."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Judges the agents' topic. ``nodes`` are the host ids of the cluster."""

    watcher: RecentRecords
    settings: Settings
    nodes: frozenset[str]

    def why_not_offline(self, now: Micros) -> str | None:
        """Why users may be writing; None if no write of the last minute was captured anywhere.

        It is proven only if a canary of that minute has come back from every node.
        """
        topics = [self.settings.kafka.topic_prefix]
        begins = self.watcher.offsets_at(topics, now - MINUTE)
        ends = self.watcher.end_offsets(topics)
        heard = set[str]()
        for (topic, partition), begin in begins.items():
            for record in self.watcher.records(topic, partition, begin, ends[topic][partition]):
                told = self._told(record, now - MINUTE)
                if isinstance(told, str):
                    return told
                heard |= told
        silent = sorted(self.nodes - heard)
        if silent:
            return f"no canary of the last minute has come back from node {', '.join(silent)}"
        return None

    def _told(self, record: Record, since: Micros) -> str | frozenset[str]:
        """The node of a new canary, or why users write."""
        if record.value is None:  # a tombstone of Kafka's compaction names no change
            return frozenset()
        try:
            source = json.loads(record.value)["source"]
            keyspace, table, at = source["keyspace"], source["table"], int(source["ts_us"])
            if at < since:
                return frozenset()
            if keyspace == self.settings.cassandra.keyspace:
                return f"{table} was written at {iso(at)}"
            if (keyspace, table) != (self.settings.canary.keyspace, CANARY_TABLE):
                return frozenset()
            key: Any = json.loads(record.key or b"")
            return frozenset({node_of(key["place"])})
        except (ValueError, KeyError, TypeError, RecursionError):
            place = f"{record.topic}/{record.partition} offset {record.offset}"
            return f"the record at {place} cannot be read"
