"""Tallies: the last counts of each mailbox, and the rounds of corrections (the ports).

A mailbox is counted by chunks of UIDs, so a change costs one chunk to count again. Chunks only
raise suspicion: before a correction everything is counted again, against the truth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from checkpoints.clock import HOUR
from reconcilers.declared.tally import Sums
from reconcilers.words.model import Micros

MARKS_KEPT_DAYS = 8
"""A day longer than bookmarks: a stream that restarts continues from its newest bookmark."""


def marks_begin(now: Micros) -> Micros:
    """The time (µs) of the oldest marks that are stored at ``now`` (µs)."""
    return now - MARKS_KEPT_DAYS * 24 * HOUR


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some UIDs: their sums, when they were counted and last changed (µs); None if never."""

    sums: Sums | None = None
    counted_at: Micros | None = None
    marked_at: Micros | None = None

    def stale(self, slack: Micros) -> bool:
        """Whether it may have changed since the count; clocks differ by up to ``slack`` (µs)."""
        if self.counted_at is None:
            return True
        return self.marked_at is not None and self.marked_at + slack >= self.counted_at


@dataclass(frozen=True, slots=True)
class ChunkSums:
    """The chunks of a mailbox by number; ``whole`` if all of it was counted once.

    ``whole_at`` is when that count began (µs): a chunk that is not listed was empty then.
    """

    chunks: Mapping[int, Chunk]
    whole: bool
    whole_at: Micros | None = field(default=None, compare=False)


class Tallies(Protocol):
    """The last counts of mailboxes."""

    def marked_in_this_width_since(self, now: Micros) -> Micros:
        """Since when (µs) all marks have this chunk width; ``now`` if they have another."""

    def mark(self, touched: Mapping[UUID, Collection[int]], at: Micros) -> None:
        """Store that these chunks changed at a time (µs); durable when this returns."""

    def marked_in(self, hour: int) -> Iterator[UUID]:
        """The mailboxes marked in an hour, counted from the epoch, page by page."""

    def of_mailbox(self, mailboxid: UUID) -> ChunkSums:
        """The stored chunks of a mailbox."""

    def of_mailboxes(self, mailboxids: Collection[UUID]) -> dict[UUID, ChunkSums]:
        """The stored chunks of mailboxes; those without any are left out."""

    def counted(self, sums: Mapping[UUID, Mapping[int, Sums]], began: Micros) -> None:
        """Store counts of chunks; ``began`` (µs), when the count began, is their write time."""

    def counted_whole(self, sums: Mapping[UUID, Mapping[int, Sums]], began: Micros) -> None:
        """Store counts of all chunks of mailboxes; chunks that are not given are empty."""


class Rounds(Protocol):
    """The numbers of corrections of counter rows; each is claimed before it is sent."""

    def current(self, tally: str, key: str) -> int:
        """The number of rounds that have been claimed."""

    def claim(self, tally: str, key: str, after: int) -> bool:
        """Claim the round after ``after``; False if another has it. `Retryable`: unknown."""
