"""What one look has read about one slot. Pure.

`streaming.steps.confirm` reads the projection first and the truth second. It reads lineage only if
one side lacks the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconcilers.declared.family import Family
from reconcilers.rows.memory import NOTHING_REMEMBERED, Entry, Memory
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Suspect, Wake


@dataclass(frozen=True, slots=True)
class Seen:
    """All that one look has read about one slot: the projection's row and all claiming truth rows.

    ``consulted`` are the sources whose truth partition was read for it. ``present`` are the slots
    that the truth has for them in this group now, without rows that are incomplete or only outlived
    their own delete. ``suspected`` is what a look at least one delay ago found here. ``listed``:
    for an index, whether the listing has the row. ``swept``: if no source was consulted, whether
    lineage has every row of the truth, and therefore none here. ``others_listed`` are the
    remembered rows of its sources in this group that the listing has. ``has_truth``: a consulted
    source has a truth row in some group; ``truth_at`` is the newest write of those (µs), 0 if it is
    not known.
    """

    slot: Slot
    actual: Row | None
    truths: tuple[Row, ...]
    consulted: frozenset[KeyValue] = frozenset()
    memory: Memory = NOTHING_REMEMBERED
    present: frozenset[Slot] = frozenset()
    suspected: Kind | None = None
    listed: bool = False
    swept: bool = False
    others_listed: frozenset[Slot] = frozenset()
    has_truth: bool = False
    truth_at: Micros = 0


@dataclass(frozen=True, slots=True)
class SlotRows:
    """What the confirming reads found at one slot, with write times.

    ``actual`` is the projection's row, ``listed`` that of the listing (equal if the listing is
    confirmed). ``truths`` are all rows of the truth partitions of the ``claimants``, in any group.
    """

    actual: Row | None
    listed: Row | None
    claimants: frozenset[KeyValue]
    truths: tuple[Row, ...]


def claimants(
    family: Family, suspect: Suspect, listed: Row | None, remembered: Iterable[Entry]
) -> frozenset[KeyValue]:
    """The sources that may claim the suspect's slot.

    These are the sources that its events named, that were ever seen there, and that the listing's
    row or its key names. The listing may name a wrong one, so each is read.
    """
    source = family.listing.source_of(listed)
    named = () if source is None else (source,)
    by_key = family.named_by(suspect.slot)
    return suspect.sources.union((entry.source for entry in remembered), named, by_key)


def wakes_of(family: Family, suspect: Suspect, suspected: Kind | None) -> list[Wake]:
    """The wakes that publish a suspect for a look one delay later, with all sources that may count.

    A wake names one source. Lineage has the others, so a family without it needs a wake for each.
    """
    if family.remembered or len(suspect.sources) < 2:
        return [suspect.wake(suspected)]
    each_alone = (frozenset({each}) for each in sorted(suspect.sources, key=str))
    return [replace(suspect, sources=one).wake(suspected) for one in each_alone]


def is_one_sided(family: Family, slot: Slot, rows: SlotRows) -> bool:
    """Whether only one side has the row, so that lineage is needed to decide."""
    return (rows.actual is None) != (not _claiming(family, slot, rows))


def seen_at(
    family: Family, suspect: Suspect, rows: SlotRows, memory: Memory, delay: Micros
) -> Seen:
    """The suspect's slot as the confirming reads saw it, with the memory of its claimants.

    If a truth row was written within ``delay``, D (µs), of a range delete, it may have outlived
    that delete only because two clocks differ. Without lineage no rows beside it are evidence: a
    list may have a thousand.
    """
    slot, slot_of = suspect.slot, family.truth.slot_of
    there = tuple(_in_group(family, slot, rows)) if family.remembered else ()
    present = frozenset(
        slot_of(row)
        for row in there
        if not is_incomplete(family, row) and not outlived_its_delete(row, memory, delay)
    )
    restored = {
        each: taken
        for each, row in zip(map(slot_of, there), there, strict=True)
        if (taken := took(row, each, memory, delay))
    }
    return Seen(
        slot,
        rows.actual,
        _claiming(family, slot, rows),
        consulted=rows.claimants,
        memory=_with_restored(memory, restored),
        present=present,
        suspected=suspect.suspected,
        listed=rows.listed is not None,
        has_truth=bool(rows.truths),
        truth_at=max((at for each in rows.truths for at in each.written.values()), default=0),
    )


def is_incomplete(family: Family, truth: Row) -> bool:
    """Whether a column is null that James needs to read this truth row."""
    return None in [truth.cells.get(column) for column in family.truth.required]


def outlived_its_delete(truth: Row, memory: Memory, delay: Micros) -> bool:
    """Whether its user deleted it, and it exists only because clocks differ by less than D."""
    return any(
        abs(written - deleted) <= delay
        for deleted in memory.range_deletes
        for written in truth.written.values()
    )


def took(truth: Row, slot: Slot, memory: Memory, delay: Micros) -> frozenset[Micros]:
    """The range deletes that took a row which exists all the same, because somebody restored it.

    They are newer than the row, or than a read that had found it. Clocks may differ by less than
    D/2; ``delay`` is D (µs).
    """
    newest, read = max(truth.written.values(), default=None), memory.read.get(slot)
    since = [*([newest] if newest is not None else ()), *([read - delay // 2] if read else ())]
    return frozenset(each for each in memory.range_deletes if any(at <= each for at in since))


def _with_restored(memory: Memory, restored: Mapping[Slot, frozenset[Micros]]) -> Memory:
    """The memory in which each restored row accounts for one delete, like one of the listing."""
    if not restored:
        return memory
    heard = memory.sibling_deletes
    back = {each: heard.get(each) or frozenset({max(at)}) for each, at in restored.items()}
    return replace(memory, sibling_deletes={**heard, **back})


def _in_group(family: Family, slot: Slot, rows: SlotRows) -> Iterator[Row]:
    column = family.truth.slot[0]
    return (row for row in rows.truths if row.get(column) == slot.group)


def _claiming(family: Family, slot: Slot, rows: SlotRows) -> tuple[Row, ...]:
    columns, key = family.truth.slot, slot.key
    return tuple(row for row in rows.truths if tuple(map(row.cells.get, columns)) == key)
