"""Lanes: which keys of a table of canaries lead to which partition of the agent's topic."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from kafka.partitioner.default import murmur2

from reconcilers.words.errors import Unreachable
from streaming.topics.watcher import Watcher

PARTITIONS_EVERY = 60.0
"""Seconds between two requests for the number of partitions."""
KNOWN_AFTER = 900.0
"""Seconds until every producer uses added partitions: three times its `metadata.max.age.ms`."""


@dataclass(slots=True)
class Lanes:
    """The lanes of a topic, whose partitions are counted from time to time. For one thread.

    An agent's producer uses added partitions up to `KNOWN_AFTER` later, and partitions may be added
    while no canaries are written. Lanes that were in use therefore stay in use for that long.
    """

    watcher: Watcher
    topic: str
    clock: Callable[[], float] = time.monotonic
    partitions: int = 0
    """How many there are, as far as is known."""
    _asked_at: float = float("-inf")
    _since: float = 0.0

    def of(self, place: str, used: Collection[int]) -> tuple[int, ...]:
        """The lanes of a place, given those in use. Raises `Retryable`."""
        if self.clock() - self._asked_at > PARTITIONS_EVERY:
            self._ask()
        lanes = with_lanes_for(place, self.partitions, used)
        late = self.clock() - self._since > KNOWN_AFTER
        return newest_lanes(place, self.partitions, lanes) if late else lanes

    def _ask(self) -> None:
        """Count the partitions. If Kafka is away, the last number stays: agents queue meanwhile."""
        try:
            self.watcher.missing([self.topic])  # this asks the broker
            told = len(self.watcher.partitions(self.topic))
        except Unreachable:
            told = 0
        if told and told != self.partitions:
            self.partitions, self._since = told, self.clock()
        if not self.partitions:
            raise Unreachable(f"Kafka reports no partitions of {self.topic} right now")
        self._asked_at = self.clock()


def with_lanes_for(place: str, partitions: int, used: Collection[int]) -> tuple[int, ...]:
    """The lanes in use and, unless they lead to each partition, new lanes after them that do.

    An agent sends a canary's lanes in their order. If its producer starts to use new partitions
    between two of them, each old partition still gets a lane: one in use before that moment, or a
    new one.
    """
    if len({leads_to(place, lane, partitions) for lane in used}) == partitions:
        return tuple(sorted(used))
    return tuple(sorted((*used, *lanes_of(place, partitions, max(used, default=-1) + 1))))


def newest_lanes(place: str, partitions: int, lanes: Collection[int]) -> tuple[int, ...]:
    """For each partition, the last of the lanes that lead to it."""
    return tuple(
        sorted({leads_to(place, each, partitions): each for each in sorted(lanes)}.values())
    )


def partition_of(key: bytes, partitions: int) -> int:
    """Where Kafka's own producer sends a record with this key, given the number of partitions."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


@lru_cache(maxsize=10_000)
def leads_to(place: str, lane: int, partitions: int) -> int:
    """The partition to which a lane leads.

    The agent's key of a record is the primary key of the row, as compact JSON.
    """
    key = json.dumps({"place": place, "lane": lane}, separators=(",", ":")).encode()
    return partition_of(key, partitions)


def came_astray(place: str, lane: int, partitions: int, partition: int) -> int:
    """0 if a canary came where its lane leads, else the number of partitions of its lanes.

    Also 0 if that number is not known.
    """
    return 0 if not partitions or leads_to(place, lane, partitions) == partition else partitions


@lru_cache(maxsize=1_000)
def lanes_of(place: str, partitions: int, first: int = 0) -> tuple[int, ...]:
    """For each partition, the first lane from ``first`` on that leads to it, in their order."""
    found: dict[int, int] = {}
    lanes = count(first)
    while len(found) < partitions:
        lane = next(lanes)
        found.setdefault(leads_to(place, lane, partitions), lane)
    return tuple(lane for _, lane in sorted(found.items()))
