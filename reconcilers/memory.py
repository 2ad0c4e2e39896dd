"""What is remembered of messages: the entries that lineage keeps, and what follows from them. Pure.

Lineage (`checkpoints.lineage`) keeps `Entry` and the deletes that were seen; `memory_of` makes of
them what the rules of evidence in `reconcilers.confirm` ask: which UIDs the truth ever had, since
when that is all there were, and which deletes could have taken some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.model import Micros, Slot

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


@dataclass(frozen=True, slots=True)
class Memory:
    """What lineage remembers of one message in one mailbox; see `memory_of`.

    ``known`` are the UIDs that were ever seen in the truth or named by one of its events,
    ``unsure`` those only seen on the projection's side. From ``complete_at`` on, ``known`` holds
    every UID that the truth had: a read of the message's whole truth partition recorded them then;
    0 when the message was born while the stream was watching, None when neither is so.
    ``range_deletes`` are the times of truth deletes that named no UID, ``row_deletes`` of those
    that named this one, ``projection_deletes`` of deletes of this very projection row;
    ``sibling_deletes`` counts those of the message's other rows here, by UID.
    """

    known: frozenset[int] = frozenset()
    unsure: frozenset[int] = frozenset()
    complete_at: Micros | None = None
    range_deletes: frozenset[Micros] = frozenset()
    row_deletes: frozenset[Micros] = frozenset()
    projection_deletes: frozenset[Micros] = frozenset()
    sibling_deletes: Mapping[int, int] = field(default_factory=dict)

    @property
    def heard_of_a_delete(self) -> bool:
        """Whether any delete that could have taken this row is known."""
        return bool(self.range_deletes or self.row_deletes or self.projection_deletes)

    @property
    def complete(self) -> bool:
        """Whether ``known`` was complete before the first delete that could have taken some."""
        if self.complete_at is None:
            return False
        return not self.range_deletes or self.complete_at < min(self.range_deletes)


NOTHING_REMEMBERED = Memory()


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
