"""What lineage remembers of sources (messages): its entries, and what follows from them. Pure.

`checkpoints.lineage` stores `Entry` and the received deletes. `memory_of` derives from them what
`reconcilers.rows.evidence` needs: the rows that the truth ever had, since when the list of them is
complete, and the deletes that could have taken some.
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

    ``in_truth``: the truth had the row, or a truth event named it; otherwise only the projection
    had it. ``recorded_at`` (µs) is when a read of the source's whole truth partition found it, None
    if there was none. ``expiring`` is only read: the entry will be forgotten, so `Lineage.remember`
    it again if the row exists. ``had_at`` (µs) is when a read last found the row in the truth
    after a received delete, or before the row is re-added. None without such a read.
    """

    source: KeyValue
    slot: Slot
    in_truth: bool
    recorded_at: Micros | None = None
    expiring: bool = False
    had_at: Micros | None = None


@dataclass(frozen=True, slots=True)
class Watching:
    """Since when (µs, our clock) every change has been received.

    ``swept_at`` is the end of the truth half of the last valid sweep (µs), None without one.
    ``listed_at`` is when one had read the listing, too. ``captured`` names the watched tables as
    they were captured then. ``noted_at`` is when this was written (µs); a loss is noticed some time
    later.
    """

    since: Micros
    swept_at: Micros | None = None
    captured: str = ""
    listed_at: Micros | None = None
    noted_at: Micros = field(default=0, compare=False)

    def believed(self, delay: Micros) -> Watching:
        """This value with margins for clocks, which differ by less than D/2; ``delay`` is D (µs).

        Births, reads and deletes are compared with it. A delete stamped by a fast clock after a
        sweep may have taken a row that the sweep did not read. A sweep's mark from before the
        beginning does not count. A truth delete may come a delay after the listing's, because James
        repeats it.
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
        """The time (µs) from which a sweep must begin: after a loss was noticed, with a margin."""
        return max(self.since, self.noted_at) + delay // 2


@dataclass(frozen=True, slots=True)
class Memory:
    """What lineage has of one source in one group (a message in a mailbox); see `memory_of`.

    ``known`` are the slots that were ever seen in the truth or named by its events, ``unsure``
    those only seen in the projection. From ``complete_at`` (µs) on, ``known`` has every slot of the
    truth, because a read of the whole truth partition recorded them; 0 if the source was born while
    the stream was watching, None if neither is the case. ``listing_known_at`` (µs) is when slots
    that only the listing had were known, too; 0 if the source or the group was born then, None if
    unknown. ``lost_before`` are the known slots that the truth may have lost before that: no later
    read has found them. If ``complete_at`` is None, they are those that any read found.

    ``range_deletes`` are the times of truth deletes that named no slot, ``row_deletes`` of those
    that named this one, ``projection_deletes`` of deletes of this projection row.
    ``sibling_deletes`` has by slot when the source's other rows here may have gone from the
    projection. ``had`` is when the truth last had a row after a delete of it, ``read`` when a read
    first found it there. ``unseen``: no truth row of the source was ever read or received.
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
        """Whether a received delete named this very row."""
        return bool(self.row_deletes or self.projection_deletes)

    @property
    def complete(self) -> bool:
        """Whether ``known`` was complete before the first delete that could have taken a row."""
        if self.complete_at is None:
            return False
        return not self.range_deletes or self.complete_at < min(self.range_deletes)

    @property
    def contradicted(self) -> bool:
        """Whether something was missed, although memory counts as complete.

        That is the case if a delete was received and no row of the source is known here, or if no
        row was ever received: only its writer's clock then dates its birth.
        """
        return self.unseen or (bool(self.range_deletes) and not self.known)

    def ended(self, slot: Slot, delay: Micros) -> Micros:
        """The time (µs) from which a delete may have ended a row; ``delay`` is D (µs).

        An older delete did not end the row, because a read found the row later. A read of ``had``
        came D after the delete was received, and clocks differ by less than D/2. Any other read
        certainly saw only deletes that were issued D before it.
        """
        had, read = self.had.get(slot, NEVER), self.read.get(slot, NEVER)
        return max(had - delay // 2, read - delay)

    def holds(self, slot: Slot) -> bool:
        """Whether the truth had this slot when memory was complete, or later."""
        return slot in self.known - self.lost_before


NEVER: Micros = -(2**63)
NOTHING_REMEMBERED = Memory()


def born_at(source: KeyValue) -> Micros | None:
    """When a source with a time-based UUID was created (µs), None for any other."""
    if not isinstance(source, UUID) or source.version != 1:
        return None
    return (source.time - UUID_EPOCH_100NS) // 10


def believed_since(watching: Watching | None, delay: Micros) -> Micros | None:
    """The time (µs) from which births and reads count; None while nothing is watched."""
    return None if watching is None else watching.believed(delay).since


def group_is_whole(group: KeyValue, watching: Watching | None, delay: Micros) -> bool:
    """Whether lineage has everything that a group (a mailbox) had since ``watching`` began.

    The group was born while every change was received, or a sweep has read the whole truth since. A
    group whose id has no time needs the sweep. ``delay`` is D (µs).
    """
    if watching is None:
        return False
    believed = watching.believed(delay)
    return believed.swept_at is not None or _born_since(group, believed)


def _born_since(made: KeyValue, watching: Watching) -> bool:
    """Whether every event of a source, or a group, was received."""
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
    """The memory of one source in the slot's group.

    ``projection_deletes`` has the deletes of the source's rows here, by slot. ``watching`` is a
    `Watching.believed`. An entry recorded before it began does not make the memory complete.
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
    """Since when (µs) no unknown row of the source can be in the listing; None if unknown."""
    if watching is None:
        return None
    born = _born_since(source, watching) or _born_since(slot.group, watching)
    return 0 if born else watching.listed_at


def _read_before(entry: Entry, whole_at: Micros | None) -> bool:
    if whole_at is None:
        return entry.recorded_at is not None
    return (entry.recorded_at or 0) < whole_at


def complete_at(
    source: KeyValue, here: Iterable[Entry], watching: Watching | None
) -> Micros | None:
    """Since when (µs) a source's entries in a group are complete, None if unknown; see `Memory`.

    ``watching`` is a `Watching.believed`: births and reads count from its ``since`` on.
    """
    if watching is None:
        return None
    if _born_since(source, watching):
        return 0
    read = (entry.recorded_at for entry in here if entry.recorded_at is not None)
    whole = [at for at in read if at >= watching.since]
    return min(whole if watching.swept_at is None else [*whole, watching.swept_at], default=None)


def merged(slot: Slot, memories: Sequence[Memory]) -> Memory:
    """The memories of several sources at one slot as one, complete only if each is.

    A contradicted memory is not complete. A delete that named the row belongs to the source whose
    row the truth had there, if any: the listing's row may name a wrong one.
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
    known = [at for at in times if at is not None]
    return max(known) if len(known) == len(times) else None
