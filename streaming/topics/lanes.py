"""Lanes: which keys of a table of canaries lead to which partition of the agent's topic."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from kafka.partitioner.default import murmur2

from reconcilers.errors import Unreachable
from streaming.topics.watcher import Watcher

PARTITIONS_EVERY = 60.0
"""Seconds until it is asked again how many partitions there are."""


@dataclass(slots=True)
class Lanes:
    """Those of a topic, whose partitions are counted now and then. For one thread."""

    watcher: Watcher
    topic: str
    clock: Callable[[], float] = time.monotonic
    _partitions: int = 0
    _asked_at: float = float("-inf")

    def of(self, place: str) -> tuple[int, ...]:
        """The lanes of a place, one for each partition. Raises `Retryable`."""
        if self.clock() - self._asked_at > PARTITIONS_EVERY:
            self._ask()
        return lanes_of(place, self._partitions)

    def _ask(self) -> None:
        """While Kafka is away agents queue, and canaries go on as before."""
        try:
            self.watcher.missing([self.topic])  # asks the broker anew
            told = len(self.watcher.partitions(self.topic))
        except Unreachable:
            told = 0
        self._partitions = told or self._partitions
        if not self._partitions:
            raise Unreachable(f"Kafka tells no partitions of {self.topic} right now")
        self._asked_at = self.clock()


def partition_of(key: bytes, partitions: int) -> int:
    """Where Kafka's own producer sends a record with this key, if the topic has so many."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


@lru_cache(maxsize=1_000)
def lanes_of(place: str, partitions: int) -> tuple[int, ...]:
    """The first lane that leads from a place to each partition, in the order of partitions.

    The agent's key of a record is the row's primary key, as compact JSON.
    """
    found: dict[int, int] = {}
    lanes = count()
    while len(found) < partitions:
        lane = next(lanes)
        key = json.dumps({"place": place, "lane": lane}, separators=(",", ":")).encode()
        found.setdefault(partition_of(key, partitions), lane)
    return tuple(lane for _, lane in sorted(found.items()))
