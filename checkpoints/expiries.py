"""Expiries: when a cell written with a TTL is gone, no event tells; a look is due then (the port).

Implementations: `checkpoints.cassandra.CassandraExpiries`, and the fake
`tests.fakes.checkpoints.memory.MemoryExpiries`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from reconcilers.words.model import KeyValue, Micros, Slot

KEPT_AFTER_DUE = timedelta(days=8)
"""A day longer than bookmarks: a stream that starts again reads on from its newest."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """A slot to be looked at when a cell has expired: ``due``, µs. ``source`` if it is known."""

    slot: Slot
    source: KeyValue | None
    due: Micros


class Expiries(Protocol):
    """What expires when; each stream keeps for itself how far it has looked."""

    def expect(self, expiries: Iterable[Expiry]) -> None:
        """Remember them; idempotent."""

    def between(self, after: Micros, until: Micros) -> Iterator[Expiry]:
        """Those due later than ``after``, up to and including ``until``, in the order of time."""
