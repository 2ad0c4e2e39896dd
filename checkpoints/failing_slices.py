"""The slice that a stream fails at, stored so that it survives a killed process (the port).

If a row exists when a stream starts, the earlier process was killed or a slice had failed. A stream
that stops while nothing fails leaves no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from checkpoints.bookmarks import Place
from reconcilers.words.model import Micros


@dataclass(frozen=True, slots=True)
class FailingSlice:
    """A slice that was tried and not settled; ``name`` is empty if nothing fails.

    ``times`` is the number of attempts since ``since`` (µs), ``unheard`` of those without an
    outcome, as after a killed process. ``end`` is where the slice tried last ended. Up to the
    positions ``until`` it is split into parts of at most ``most`` records; 0: it is tried whole.
    """

    name: str = ""
    times: int = 0
    unheard: int = 0
    since: Micros = 0
    end: Mapping[Place, int] = field(default_factory=dict)
    most: int = 0
    until: Mapping[Place, int] = field(default_factory=dict)


class FailingSlices(Protocol):
    """Implementations: `CassandraFailingSlices`, and the fake `MemoryFailingSlices`."""

    def of(self, stream: str) -> FailingSlice | None:
        """The failing slice of this stream, None after a clean stop or before the first run."""

    def keep(self, stream: str, failing: FailingSlice) -> None:
        """Replace it; durable when this returns."""

    def forget(self, stream: str) -> None:
        """Remove it at a clean stop."""
