"""What counting reads and writes; unless noted, `streaming.tables.CounterTables` implements it.

The port of the truth is in `streaming.steps.ports`.
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
    """Reads counters."""

    def stored(self, tally: Tally, key: UUID | str) -> Sums | None:
        """The sums of a counter row, None when there is none."""


class AddTables(StoredTables, Protocol):
    """Reads and corrects counters."""

    def add(self, write: AddToCounter) -> None:
        """Send a claimed delta, once."""


class ListTables(Protocol):
    """Reads the listing."""

    def listed(self, mailboxid: UUID, first: int = 0, last: int = 2**63 - 1) -> Iterator[Listed]:
        """The messages of a mailbox in a range of UIDs, ordered by UID."""


class WholeCounts(Protocol):
    """Two methods of `checkpoints.tallies.Tallies`, as `WatchedTallies` has them."""

    def of_mailbox(self, mailboxid: UUID) -> ChunkSums:
        """The counted chunks of a mailbox."""

    def counted_whole(self, sums: Mapping[UUID, Mapping[int, Sums]], began: Micros) -> None:
        """Keep the sums of all chunks of mailboxes; chunks that are left out are empty."""


class FrontierMarks(Protocol):
    """What to wait for until all changes so far are released: `streaming.tables.Canaries`."""

    def marks(self) -> Marks | None:
        """The marks of now; None if there is nothing to wait for. Raises `Retryable`."""

    def watched(self) -> str | None:
        """A name of the nodes and captured tables as they are now, as in `Marks.watched`."""


class OwnerTables(Protocol):
    """Reads who owns mailboxes."""

    def owner(self, mailboxid: UUID) -> QuotaRoot | None:
        """The quota root of a mailbox, None when the mailbox does not exist."""

    def mailboxes(self, of: QuotaRoot) -> frozenset[UUID]:
        """The mailboxes that a user's paths name."""
