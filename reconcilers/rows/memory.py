"""What is remembered of sources (messages): the entries of lineage, and what follows. Pure.

Lineage (`checkpoints.lineage`) keeps `Entry` and the deletes that were seen; `memory_of` makes of
them what the rules in `reconcilers.rows.evidence` ask: which rows the truth ever had, since when
that is all there were, and which deletes could have taken some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from reconcilers.rows.deletes import NO_DELETES, Deletes, RowDeletes
from reconcilers.words.model import KeyValue, Micros, Slot

UUID_EPOCH_100NS = 0x01B21DD213814000


@dataclass(frozen=True, slots=True)
class Entry:
    """One remembered row: a slot that a source had (a message's UID in a mailbox).

    ``in_truth`` tells a row that the truth had (or that a truth event named) from one only seen on
    the projection's side. ``recorded_at`` (µs) is when a read of the source's whole truth
    partition found it, None when it is known from an event or from the projection
    only. ``expiring`` is only read: the entry is to be forgotten, so `Lineage.remember` it again
    if the row is there. ``had_at`` (µs) is when a read last found the row in the truth although a
    delete of it had been received, or it was about to be added again; None without such a read.
    """

    source: KeyValue
    slot: Slot
    in_truth: bool
    recorded_at: Micros | None = None
    expiring: bool = False
    had_at: Micros | None = None


@dataclass(frozen=True, slots=True)
class Watching:
    """Since when (µs) every change has been heard, by our clock.

    ``swept_at`` is the end of the truth half of the last sweep that counts (µs), None without one,
    ``listed_at`` when one that counts had read the listing, too. ``captured`` names the watched
    tables, as they were captured then. ``noted_at`` is when all this was written (µs): a loss is
    noticed some time after it.
    """

    since: Micros
    swept_at: Micros | None = None
    captured: str = ""
    listed_at: Micros | None = None
    noted_at: Micros = field(default=0, compare=False)

    def believed(self, delay: Micros) -> Watching:
        """As births, reads and deletes are held against it: clocks differ by less than D/2 (µs).

        A delete that a fast clock has stamped after a sweep may have taken what it did not read.
        A sweep's mark that is older than the beginning does not count. A delete of the truth may
        come a delay after that of the listing, for it is sent again.
        """

        def counting(at: Micros | None, margin: Micros) -> Micros | None:
            return at + margin if at is not None and at >= self.since else None

        return replace(
            self,
            since=self.since + delay // 2,
            swept_at=counting(self.swept_at, delay // 2),
            listed_at=counting(self.listed_at, delay),
        )

    def sweeps_count_from(self, delay: Micros) -> Micros:
        """From when on (µs) a sweep has to begin to make memory whole.

        One that went on while a loss was noticed has held for known what the loss may have changed.
        """
        return max(self.since, self.noted_at) + delay // 2


@dataclass(frozen=True, slots=True)
class Memory:
    """What lineage remembers of one source in one group (a message in a mailbox); see `memory_of`.

    ``known`` are the slots that were ever seen in the truth or named by one of its events,
    ``unsure`` those only seen on the projection's side. From ``complete_at`` on, ``known`` holds
    every slot that the truth had: a read of the source's whole truth partition recorded them then;
    0 when the source was born while the stream was watching, None when neither is so.
    ``listing_known_at`` is when those that only the listing had were known, too (µs); also 0 for a
    source or a group that was born then, and None when they are not.
    ``lost_before`` are the known slots that the truth may have lost before that: no read of it
    since has found them; where ``complete_at`` is None, those that a read found some time.
    ``range_deletes`` are the times of truth deletes that named no slot, ``row_deletes`` of those
    that named this one, ``projection_deletes`` of deletes of this very projection row;
    ``sibling_deletes`` are when the source's other rows here may have gone from the projection, by
    slot. ``had`` is when the truth last had a row although a delete of it had been received,
    ``read`` when a read first found it there. ``unseen``: no truth row of the source was ever read
    or received.
    """

    known: frozenset[Slot] = frozenset()
    unsure: frozenset[Slot] = frozenset()
    complete_at: Micros | None = None
    listing_known_at: Micros | None = None
    lost_before: frozenset[Slot] = frozenset()
    range_deletes: frozenset[Micros] = frozenset()
    row_deletes: frozenset[Micros] = frozenset()
    projection_deletes: frozenset[Micros] = frozenset()
    sibling_deletes: Mapping[Slot, frozenset[Micros]] = field(default_factory=dict)
    had: Mapping[Slot, Micros] = field(default_factory=dict)
    read: Mapping[Slot, Micros] = field(default_factory=dict)
    unseen: bool = False

    @property
    def heard_of_its_delete(self) -> bool:
        """Whether a delete is known that named this very row."""
        return bool(self.row_deletes or self.projection_deletes)

    @property
    def complete(self) -> bool:
        """Whether ``known`` was complete before the first delete that could have taken some."""
        if self.complete_at is None:
            return False
        return not self.range_deletes or self.complete_at < min(self.range_deletes)

    @property
    def contradicted(self) -> bool:
        """Whether something was missed, whatever else says that memory is whole.

        So it is when a delete was received of a source of which no row is known here, and when no
        row of the source was ever read or received: its birth is told by its writer's clock alone.
        """
        return self.unseen or (bool(self.range_deletes) and not self.known)

    def ended(self, slot: Slot, delay: Micros) -> Micros:
        """From when on (µs) a delete may have ended a row; ``delay`` is D (µs).

        An older delete is not the row's end: a read has found the row after it. A read of ``had``
        came D after the delete was received, and clocks differ by less than D/2. When any other
        read came, only what was issued D before it had surely arrived.
        """
        had, read = self.had.get(slot, NEVER), self.read.get(slot, NEVER)
        return max(had - delay // 2, read - delay)

    def holds(self, slot: Slot) -> bool:
        """Whether the truth had this slot when memory was whole, or since.

        One that it lost before may have been lost with others of which nobody knows.
        """
        return slot in self.known - self.lost_before


NEVER: Micros = -(2**63)
NOTHING_REMEMBERED = Memory()


def born_at(source: KeyValue) -> Micros | None:
    """When a source with a time-based UUID was made (µs), None for any other."""
    if not isinstance(source, UUID) or source.version != 1:
        return None
    return (source.time - UUID_EPOCH_100NS) // 10


def believed_since(watching: Watching | None, delay: Micros) -> Micros | None:
    """From when on (µs) births and reads count; None while nobody watches."""
    return None if watching is None else watching.believed(delay).since


def group_is_whole(group: KeyValue, watching: Watching | None, delay: Micros) -> bool:
    """Whether all that a group (a mailbox) has had since ``watching`` began is remembered.

    It was born while every change was heard, or a sweep has read the whole truth since. ``delay``
    is D (µs). A group whose id tells no time needs the sweep.
    """
    if watching is None:
        return False
    believed = watching.believed(delay)
    return believed.swept_at is not None or _born_since(group, believed)


def _born_since(made: KeyValue, watching: Watching) -> bool:
    """Whether all that a source, or a group, has had came by events that were heard."""
    born = born_at(made)
    return born is not None and born > watching.since


def memory_of(
    slot: Slot,
    source: KeyValue,
    entries: Iterable[Entry],
    deletes: Deletes,
    projection_deletes: Mapping[Slot, RowDeletes],
    watching: Watching | None,
) -> Memory:
    """What is remembered of one source in the slot's group, as the pure core wants it.

    ``projection_deletes`` are those of the source's rows here, by slot; ``watching`` is as it is
    believed. What was recorded before watching began (anew) does not make the memory complete.
    """
    entries = list(entries)
    here = [entry for entry in entries if entry.slot.group == slot.group]
    whole_at = complete_at(source, here, watching)
    return Memory(
        known=frozenset(entry.slot for entry in here if entry.in_truth),
        unsure=frozenset(entry.slot for entry in here if not entry.in_truth),
        complete_at=whole_at,
        listing_known_at=_listing_known_at(slot, source, watching),
        lost_before=frozenset(
            entry.slot for entry in here if entry.in_truth and _read_before(entry, whole_at)
        ),
        range_deletes=deletes.ranges,
        row_deletes=deletes.by_slot.get(slot, frozenset()),
        projection_deletes=projection_deletes.get(slot, NO_DELETES).received,
        sibling_deletes={
            each: all_.ends for each, all_ in projection_deletes.items() if each != slot
        },
        had={entry.slot: entry.had_at for entry in here if entry.had_at is not None},
        read={each.slot: each.recorded_at for each in here if each.recorded_at is not None},
        unseen=not any(entry.in_truth for entry in entries),
    )


def _listing_known_at(slot: Slot, source: KeyValue, watching: Watching | None) -> Micros | None:
    """Since when no row of the source here can be in the listing, and unheard of.

    A read of the truth says nothing of one that the truth had lost long ago.
    """
    if watching is None:
        return None
    born = _born_since(source, watching) or _born_since(slot.group, watching)
    return 0 if born else watching.listed_at


def _read_before(entry: Entry, whole_at: Micros | None) -> bool:
    """Whether it is not known from a read since memory is whole."""
    if whole_at is None:
        return entry.recorded_at is not None
    return (entry.recorded_at or 0) < whole_at


def complete_at(
    source: KeyValue, here: Iterable[Entry], watching: Watching | None
) -> Micros | None:
    """Since when the entries of a source in a group are all there were; see `Memory`.

    ``watching`` is as it is believed: from its ``since`` on births and reads count.
    """
    if watching is None:
        return None
    if _born_since(source, watching):
        return 0
    read = (entry.recorded_at for entry in here if entry.recorded_at is not None)
    whole = [at for at in read if at >= watching.since]
    return min(whole if watching.swept_at is None else [*whole, watching.swept_at], default=None)


def merged(slot: Slot, memories: Sequence[Memory]) -> Memory:
    """Several sources seen at one slot, as one memory: complete only if each is.

    One that is contradicted is not. A delete that named the row is that of a source whose row the
    truth had there, if it had any: the listing's row may name a wrong one.
    """
    if not memories:
        return NOTHING_REMEMBERED
    times = [None if memory.contradicted else memory.complete_at for memory in memories]
    named = [memory for memory in memories if slot in memory.known] or memories
    siblings: dict[Slot, frozenset[Micros]] = {}
    for memory in memories:
        siblings |= memory.sibling_deletes
    known = frozenset[Slot]().union(*(memory.known for memory in memories))
    held = frozenset[Slot]().union(*(memory.known - memory.lost_before for memory in memories))
    return Memory(
        known=known,
        unsure=frozenset().union(*(memory.unsure for memory in memories)),
        complete_at=_latest(times),
        listing_known_at=_latest([memory.listing_known_at for memory in memories]),
        lost_before=known - held,
        range_deletes=frozenset().union(*(memory.range_deletes for memory in memories)),
        row_deletes=frozenset().union(*(memory.row_deletes for memory in named)),
        projection_deletes=frozenset().union(*(memory.projection_deletes for memory in memories)),
        sibling_deletes=siblings,
        had=_newest_of_each(memory.had for memory in memories),
        read=_newest_of_each(memory.read for memory in memories),
        unseen=any(memory.unseen for memory in memories),
    )


def _newest_of_each(times: Iterable[Mapping[Slot, Micros]]) -> dict[Slot, Micros]:
    newest: dict[Slot, Micros] = {}
    for some in times:
        for slot, at in some.items():
            newest[slot] = max(at, newest.get(slot, at))
    return newest


def _latest(times: Sequence[Micros | None]) -> Micros | None:
    """None where one is not known."""
    known = [at for at in times if at is not None]
    return max(known) if len(known) == len(times) else None
