"""Expiries: when a cell with a TTL expires, no event reports it, and a look is due (the port)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from reconcilers.words.model import KeyValue, Micros, Slot

KEPT_AFTER_DUE = timedelta(days=8)
"""A day longer than bookmarks: a stream that restarts continues from its newest bookmark."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """A slot to look at when a cell has expired, at ``due`` (µs). ``source`` is None if unknown."""

    slot: Slot
    source: KeyValue | None
    due: Micros


class Expiries(Protocol):
    """The expected expiries. Each stream stores for itself how far it has looked."""

    def expect(self, expiries: Iterable[Expiry]) -> None:
        """Store them; idempotent."""

    def between(self, after: Micros, until: Micros) -> Iterator[Expiry]:
        """The expiries due after ``after`` and no later than ``until`` (µs), ordered by time."""
