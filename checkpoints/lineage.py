"""Lineage: remembering which projection keys were seen (the port, and what it means).

A truth delete carries no UID and a projection delete no messageid, so both sides of each row that a
look reads are remembered here. Only what is absent is written. When both sides are gone an entry is
kept for `KEPT_AFTER_LOSS` more, because late writes come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from reconcilers.model import NOTHING_REMEMBERED, Memory, Micros, Slot

KEPT_AFTER_LOSS = timedelta(days=20)
WHOLE_RANGE = -1
"""Stands for the UID in a truth delete that named none."""

UUID_EPOCH_100NS = 0x01B21DD213814000


@dataclass(frozen=True, slots=True)
class Entry:
    """One remembered row: a message's UID in a mailbox.

    ``in_truth`` tells a row that the truth had (or that a truth event named) from one only seen on
    the projection's side. ``recorded_at`` (µs) is when a read of the message's whole truth
    partition found it, None when it is known from an event or from the projection
    only. ``expiring`` is only read: the entry is to be forgotten, so `Lineage.remember` it again
    if the row is there.
    """

    messageid: UUID
    mailboxid: UUID
    uid: int
    in_truth: bool
    recorded_at: Micros | None = None
    expiring: bool = False


@dataclass(frozen=True, slots=True)
class TruthDelete:
    """A delete of the truth: ``uid`` is `WHOLE_RANGE` when it named none, ``at`` its write time."""

    messageid: UUID
    mailboxid: UUID
    uid: int
    at: Micros


@dataclass(frozen=True, slots=True)
class ProjectionDelete:
    """A delete of a projection row, ``at`` its write time."""

    slot: Slot
    at: Micros


@dataclass(frozen=True, slots=True)
class Deletes:
    """Write times (µs) of deletes seen for a message in a mailbox, by UID (or WHOLE_RANGE)."""

    by_uid: dict[int, frozenset[Micros]]


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

    def truth_deleted(self, messageid: UUID, mailboxid: UUID, uid: int, at: Micros) -> None:
        """A truth delete was seen; ``uid`` is `WHOLE_RANGE` when it named none."""

    def projection_deleted(self, slot: Slot, at: Micros) -> None:
        """A delete of this projection row was seen."""

    def remember_deletes(self, deletes: Iterable[TruthDelete | ProjectionDelete]) -> None:
        """Many deletes were seen: as the two above, sent together."""

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


def born_at(messageid: UUID) -> Micros | None:
    """When a time-based messageid was made (µs), None for other UUIDs."""
    if messageid.version != 1:
        return None
    return (messageid.time - UUID_EPOCH_100NS) // 10


def memory_of(
    slot: Slot,
    messageid: UUID,
    entries: Iterable[Entry],
    deletes: Deletes,
    projection_deletes: Mapping[int, frozenset[Micros]],
    watched_since: Micros | None,
) -> Memory:
    """What is remembered of one message in the slot's mailbox, as the pure core wants it.

    ``projection_deletes`` are those of the message's rows here, by UID. What was recorded before
    watching began (anew) does not make the memory complete.
    """
    here = [entry for entry in entries if entry.mailboxid == slot.mailboxid]
    return Memory(
        known=frozenset(entry.uid for entry in here if entry.in_truth),
        unsure=frozenset(entry.uid for entry in here if not entry.in_truth),
        complete_at=complete_at(messageid, here, watched_since),
        range_deletes=deletes.by_uid.get(WHOLE_RANGE, frozenset()),
        row_deletes=deletes.by_uid.get(slot.uid, frozenset()),
        projection_deletes=projection_deletes.get(slot.uid, frozenset()),
        sibling_deletes={
            uid: len(times) for uid, times in projection_deletes.items() if uid != slot.uid
        },
    )


def complete_at(
    messageid: UUID, here: Iterable[Entry], watched_since: Micros | None
) -> Micros | None:
    """Since when the entries of a message in a mailbox are all there were; see `Memory`."""
    if watched_since is None:
        return None
    born = born_at(messageid)
    if born is not None and born > watched_since:
        return 0
    recorded = (entry.recorded_at for entry in here if entry.recorded_at is not None)
    return min((at for at in recorded if at >= watched_since), default=None)


def merged(memories: Sequence[Memory]) -> Memory:
    """Several messages seen at one slot, as one memory: complete only if each is."""
    if not memories:
        return NOTHING_REMEMBERED
    times = [memory.complete_at for memory in memories]
    siblings: dict[int, int] = {}
    for memory in memories:
        siblings |= memory.sibling_deletes
    return Memory(
        known=frozenset().union(*(memory.known for memory in memories)),
        unsure=frozenset().union(*(memory.unsure for memory in memories)),
        complete_at=None if None in times else max(time for time in times if time is not None),
        range_deletes=frozenset().union(*(memory.range_deletes for memory in memories)),
        row_deletes=frozenset().union(*(memory.row_deletes for memory in memories)),
        projection_deletes=frozenset().union(*(memory.projection_deletes for memory in memories)),
        sibling_deletes=siblings,
    )
