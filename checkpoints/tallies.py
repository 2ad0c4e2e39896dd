"""Tallies: what each mailbox was last counted to, and the rounds of corrections (the ports).

A mailbox is counted by chunks of UIDs, so that one change costs one chunk to count again. Chunks
only raise suspicion: before a correction everything is counted anew, against the truth.

Implementations: `CassandraTallies`, `CassandraRounds` in `checkpoints.cassandra`, and
`MemoryTallies`, `MemoryRounds`.
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
"""A day longer than bookmarks: a stream that starts again reads on from its newest."""


def marks_begin(now: Micros) -> Micros:
    """From when on marks may not have been gone through by ``now``: all that are kept."""
    return now - MARKS_KEPT_DAYS * 24 * HOUR


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some UIDs of a mailbox: their sums when they were counted (µs), when they last changed.

    None where that never happened.
    """

    sums: Sums | None = None
    counted_at: Micros | None = None
    marked_at: Micros | None = None

    def stale(self, slack: Micros) -> bool:
        """Whether it has changed since; by less than ``slack`` (µs) two clocks may differ."""
        if self.counted_at is None:
            return True
        return self.marked_at is not None and self.marked_at + slack >= self.counted_at


@dataclass(frozen=True, slots=True)
class ChunkSums:
    """The chunks of a mailbox by number; ``whole`` when all that it had were counted once.

    ``whole_at`` is when that began (µs): a chunk without a number was empty then.
    """

    chunks: Mapping[int, Chunk]
    whole: bool
    whole_at: Micros | None = field(default=None, compare=False)


class Tallies(Protocol):
    """What mailboxes were counted to."""

    def marked_in_this_width_since(self, now: Micros) -> Micros:
        """Since when all marks are made in chunks of this width; since now, if they were not.

        Asked by whoever counts, when it begins.
        """

    def mark(self, touched: Mapping[UUID, Collection[int]], at: Micros) -> None:
        """These chunks of these mailboxes have changed; durable when it returns."""

    def marked_since(self, at: Micros) -> Iterator[UUID]:
        """The mailboxes with a mark since then, or up to an hour earlier; some more than once."""

    def of_mailbox(self, mailboxid: UUID) -> ChunkSums:
        """What is known of a mailbox."""

    def counted(self, mailboxid: UUID, sums: Mapping[int, Sums], began: Micros) -> None:
        """Chunks were counted; ``began`` (µs), when that began, is their write time."""

    def counted_whole(self, mailboxid: UUID, sums: Mapping[int, Sums], began: Micros) -> None:
        """All chunks of a mailbox were counted: others are empty."""


class Rounds(Protocol):
    """Corrections of a counter row are counted, and each is claimed before it is sent."""

    def current(self, tally: str, key: str) -> int:
        """How many have been claimed."""

    def claim(self, tally: str, key: str, after: int) -> bool:
        """Claim the next one after so many; False when somebody else has.

        A lightweight transaction: of several that try, one succeeds. `Retryable` leaves it unknown.
        """
