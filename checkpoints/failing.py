"""What is known of the slice that a stream fails at: it outlives a process that is killed by it.

A row that is there when a stream starts means that the process before did not end as it should:
it was killed, or a slice had failed. One that ends with nothing failing leaves no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from checkpoints.bookmarks import Place
from reconcilers.words.model import Micros


@dataclass(frozen=True, slots=True)
class FailingSlice:
    """A slice that was tried and not settled, by its name; without a name nothing fails.

    ``times`` are its attempts, since when (µs); ``unheard`` those of which nothing was heard, as of
    a process that was killed. ``end`` is where the slice ended that was tried last. While parts are
    taken, up to the positions ``until``, each has at most ``most`` records; 0: slices are whole.
    """

    name: str = ""
    times: int = 0
    unheard: int = 0
    since: Micros = 0
    end: Mapping[Place, int] = field(default_factory=dict)
    most: int = 0
    until: Mapping[Place, int] = field(default_factory=dict)


class FailingSlices(Protocol):
    """Implementations: `CassandraFailingSlices`, `MemoryFailingSlices`."""

    def of(self, stream: str) -> FailingSlice | None:
        """What this stream has left, None where it ended as it should, or never ran."""

    def keep(self, stream: str, failing: FailingSlice) -> None:
        """Replace it; durable when this returns."""

    def forget(self, stream: str) -> None:
        """The stream ends as it should."""
