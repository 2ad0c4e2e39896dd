"""Lineage: remembering which projection keys were seen (the port, and what it means).

A truth delete carries no UID and a projection delete no messageid, so both sides of each row that a
look reads are remembered here. Only what is absent is written. When both sides are gone an entry is
kept for `KEPT_AFTER_LOSS` more, because late writes come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from reconcilers.memory import Deletes, Entry, ProjectionDelete, TruthDelete
from reconcilers.model import Micros, Slot

KEPT_AFTER_LOSS = timedelta(days=20)


class Lineage(Protocol):
    """Implementations: `CassandraLineage` in `checkpoints.cassandra`, `MemoryLineage`."""

    def of_messages(self, messageids: Sequence[UUID]) -> dict[UUID, list[Entry]]:
        """Entries of each message, all mailboxes. Messages without any are left out."""

    def of_slots(self, slots: Sequence[Slot]) -> dict[Slot, list[Entry]]:
        """The messages ever seen at each slot. Slots without any are left out."""

    def of_mailbox(self, mailboxid: UUID) -> Iterator[tuple[Slot, UUID]]:
        """Every slot of a mailbox with a message seen there (paged)."""

    def remember(self, entries: Iterable[Entry]) -> None:
        """Write entries, both ways round; idempotent; renews one that was expiring.

        Only for an entry that is absent, that lacks ``recorded_at``, or that is expiring (given as
        it was read): the earliest ``recorded_at`` counts, and a later one would replace it.
        ``in_truth`` of an entry that has it is never taken back.
        """

    def expire(self, entries: Iterable[Entry]) -> None:
        """Both sides are gone: keep the entries for `KEPT_AFTER_LOSS` more."""

    def remember_deletes(self, deletes: Iterable[TruthDelete | ProjectionDelete]) -> None:
        """These deletes were seen; a truth delete that named no UID is of `WHOLE_RANGE`."""

    def truth_deletes(self, messageid: UUID, mailboxid: UUID) -> Deletes:
        """The truth deletes seen for this message in this mailbox."""

    def projection_deletes(self, slot: Slot) -> frozenset[Micros]:
        """The deletes seen for this projection row."""

    def truth_deletes_in_mailbox(self, mailboxid: UUID, since: Micros, until: Micros) -> bool:
        """Whether any truth delete of this mailbox was written between two times (µs)."""

    def watched_since(self) -> Micros | None:
        """Since when every change reached the stream (µs); None before the first start."""

    def watch_from(self, at: Micros) -> None:
        """Watching begins (anew, after a known loss of events) at this time (µs)."""
