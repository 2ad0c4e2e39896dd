"""What counters ask of James's tables; `streaming.tables.CounterTables` is the real one of each.

The truth they are held against is that of `streaming.steps.ports`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol
from uuid import UUID

from checkpoints.tallies import ChunkSums
from reconcilers.capture.frontier import Marks
from reconcilers.declared.tally import Listed, QuotaRoot, Sums, Tally
from reconcilers.declared.writes import AddToCounter
from reconcilers.words.model import Micros


class StoredTables(Protocol):
    """The counters, read."""

    def stored(self, tally: Tally, key: UUID | str) -> Sums | None:
        """What a counter row holds, None when there is none."""


class AddTables(StoredTables, Protocol):
    """The counters, read and corrected."""

    def add(self, write: AddToCounter) -> None:
        """Send a claimed delta, once."""


class ListTables(Protocol):
    """The messages of mailboxes."""

    def listed(self, mailboxid: UUID, first: int = 0, last: int = 2**63 - 1) -> Iterator[Listed]:
        """The messages of a mailbox by UID, in that range."""


class WholeCounts(Protocol):
    """What mailboxes were counted to; `streaming.counters.unmarked.WatchedTallies` is the real one.

    Its methods are those of `checkpoints.tallies.Tallies`.
    """

    def of_mailbox(self, mailboxid: UUID) -> ChunkSums:
        """The counted chunks of a mailbox."""

    def counted_whole(self, mailboxid: UUID, sums: Mapping[int, Sums], began: Micros) -> None:
        """Keep the sums of all chunks of a mailbox; chunks that are left out are empty."""


class FrontierMarks(Protocol):
    """What to wait for until all changes up to now have come out.

    `streaming.tables.Canaries` is the real one.
    """

    def marks(self) -> Marks | None:
        """The marks of this moment; None where there is nothing to wait for. Raises `Retryable`."""

    def watched(self) -> str | None:
        """Names the nodes and captured tables as they are now, as the marks do."""


class OwnerTables(Protocol):
    """Who owns what."""

    def owner(self, mailboxid: UUID) -> QuotaRoot | None:
        """Whose a mailbox is, None when it does not exist."""

    def mailboxes(self, of: QuotaRoot) -> frozenset[UUID]:
        """The mailboxes that a user's paths name."""
