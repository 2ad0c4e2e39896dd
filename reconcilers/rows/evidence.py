"""Which removals are what a user did: the evidence for taking an orphan out of the listing. Pure.

An orphan is a row that the truth does not have. `evidence_for_removal` says why it may go; where
nothing does, `without_evidence` says under which class it waits for a person. What only the
source's (message's) content can settle is asked for afterwards, see `by_content`.
"""

from __future__ import annotations

from enum import Enum, auto

from reconcilers.declared.family import Family
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Difference, Kind, Micros, Repair, Report, Row, Slot, Verdict


class ContentFound(Enum):
    """What was found of the content of all sources that may claim a row.

    Gone: none has a truth row in any group, and then none had content. Not known: content is not
    read here, or could not be.
    """

    KEPT = auto()
    GONE = auto()
    NOT_KNOWN = auto()


def evidence_for_removal(family: Family, seen: Seen, delay: Micros) -> str | None:
    """Why removing this orphan is what its user did, None when that is not known.

    What memory says counts only for a row that the truth did not lose before memory was whole.
    ``delay`` is D (µs).
    """
    memory, slot = seen.memory, seen.slot
    if its_delete_was_heard(family, seen, delay):
        return "a delete of this very row was seen"
    if memory.contradicted or not (memory.holds(slot) or _came_after(seen)):
        return None
    if _never_known(seen):
        return f"the truth never had this {family.key[-1].label}"
    if slot not in memory.known or not heard_since_written(family, seen, delay):
        return None
    return _it_was_meant(family, seen, delay)


def _never_known(seen: Seen) -> bool:
    """Whether memory, which is whole, knows nothing of this row: the truth never had it."""
    return seen.memory.complete and seen.slot not in seen.memory.known


def may_be_unheard(family: Family, seen: Seen, until: Micros, delay: Micros) -> bool:
    """Whether an orphan is unknown perhaps only because its own event is still to come.

    So may be one of which nobody knows what it is of. Every event of before ``until`` (µs) has been
    heard; ``delay`` is D (µs). A row of nothing but a key does not tell when it was written.
    """
    unknown = _never_known(seen) if seen.consulted else seen.swept
    if seen.actual is None or not unknown:
        return False
    oldest = min(seen.actual.written.values(), default=0)
    return oldest > until and not its_delete_was_heard(family, seen, delay)


def _it_was_meant(family: Family, seen: Seen, delay: Micros) -> str | None:
    """Why a delete meant this row, of those that the truth had; None where that is not known.

    Deletes are not counted against lost rows: one of the listing's may be lost, or two sessions
    have meant one row. Nor are all the rows known that a user saw, until the listing was read: it
    may have had one that the truth had lost before memory began.
    """
    memory, since = seen.memory, _since(family, seen, delay)
    if memory.complete_at is None or _others_lost(seen, since, delay):
        return None
    known_at = memory.listing_known_at
    if known_at is None or any(since <= each <= known_at for each in memory.range_deletes):
        return None
    if max(memory.range_deletes, default=0) <= memory.complete_at:
        return None
    row, source, group = family.key[-1].label, family.truth.source.label, family.group.label
    return f"no other {row} of the {source} was lost in this {group}"


def _others_lost(seen: Seen, since: Micros, delay: Micros) -> bool:
    """Whether a delete since then (µs) may have meant another row of the source.

    One whose delete was heard from the listing before that is of the past, as before a message
    comes back under a new key. One that is there although its delete was heard may be of a truth
    that was restored.
    """
    deletes = seen.memory.sibling_deletes
    lost = _lost(seen) - {seen.slot}
    unheard = any(_ended_at(seen, each, since, delay) >= since for each in lost)
    return unheard or any(
        max(deletes.get(each, ()), default=since - 1) >= since for each in seen.present
    )


def _ended_at(seen: Seen, other: Slot, unknown: Micros, delay: Micros) -> Micros:
    """When another row ended (µs), by the delete of it that was received; else ``unknown``."""
    if other in seen.others_listed:  # its user still sees it, and may expunge it
        return unknown
    earliest = seen.memory.ended(other, delay)
    ends = [at for at in seen.memory.sibling_deletes.get(other, ()) if at > earliest]
    return max(ends, default=unknown)


def its_delete_was_heard(family: Family, seen: Seen, delay: Micros) -> bool:
    """Whether a delete was heard that named this very row, since it was written.

    An older one meant what was there before: our own removal of a row at a wrong key, or a row of
    before the tables were restored from a copy, of which the keys are given out once more. One of
    the truth may have named its whole partition, so it counts only if the row was there by then,
    whatever clocks say.
    """
    since, memory = _since(family, seen, delay), seen.memory
    there = max(since, _oldest(family, seen) + delay)
    return any(deleted >= since for deleted in memory.projection_deletes) or any(
        deleted >= there for deleted in memory.row_deletes
    )


def heard_since_written(family: Family, seen: Seen, delay: Micros) -> bool:
    """Whether a delete was heard that could have taken the truth's row. ``delay`` is D (µs)."""
    since, memory = _since(family, seen, delay), seen.memory
    deletes = memory.range_deletes | memory.row_deletes | memory.projection_deletes
    return any(deleted >= since for deleted in deletes)


def _since(family: Family, seen: Seen, delay: Micros) -> Micros:
    """From when on (µs) a delete came after the row.

    James writes the listing after the truth, within a delay D, and two clocks differ by less than
    another.
    """
    return max(_oldest(family, seen) - 2 * delay, seen.memory.ended(seen.slot, delay))


def _oldest(family: Family, seen: Seen) -> Micros:
    """When the row was written (µs): its oldest cell.

    0 of a row that names no source: it was not written so, but is what a late change of a flag has
    left, after whatever delete.
    """
    if seen.actual is None or not _names_its_source(family, seen.actual):
        return 0
    return min(seen.actual.written.values(), default=0)


def _names_its_source(family: Family, row: Row) -> bool:
    identity = family.listing.identity
    return identity in family.listing.key or row.get(str(identity)) is not None


def without_evidence(family: Family, seen: Seen, delay: Micros) -> Report:
    """The class under which an orphan without evidence waits for a person."""
    row, rows = family.key[-1].label, family.key[-1].plural
    source, group = family.truth.source.label, family.group.label
    if not heard_since_written(family, seen, delay):
        unheard = f"no delete of the {source} in this {group} was heard since"
        if seen.slot in seen.memory.known:
            return Report(
                Kind.ABSENT_WITHOUT_DELETE,
                f"the truth had this {row} and lost it, and {unheard}: the truth was restored from"
                " an older copy, or events were lost",
            )
        return Report(
            Kind.AMBIGUOUS_RANGE_DELETE,
            f"the truth does not have this {row}, and {unheard} the row was written: the truth may"
            " have lost it before all was remembered",
        )
    return Report(
        Kind.AMBIGUOUS_RANGE_DELETE,
        f"the truth lost this {row}, but one delete may have taken several {rows} of the {source}"
        f" here (known lost: {_listed(_lost(seen))}, deletes seen:"
        f" {len(seen.memory.range_deletes)}): which one its user meant is not known",
    )


def asks_for_content(family: Family, verdict: Verdict, seen: Seen, delay: Micros) -> bool:
    """Whether only content can settle it: a delete was heard, and whom it meant is not known."""
    ambiguous = isinstance(verdict, Report) and verdict.kind is Kind.AMBIGUOUS_RANGE_DELETE
    return ambiguous and bool(seen.consulted) and heard_since_written(family, seen, delay)


def by_content(
    family: Family, seen: Seen, content: ContentFound, verdict: Verdict, delay: Micros
) -> Verdict:
    """The verdict of an orphan of the listing that `asks_for_content`, once that was asked for.

    Nobody can read a row whose content is gone, so it may go, unless memory knows, or cannot rule
    out for a row that was read once, that one delete took several rows: its user kept this one
    perhaps, and it is the last trace of the source.
    """
    if content is not ContentFound.GONE:
        return verdict
    source = family.truth.source.label
    if (several := _one_delete_took_several(family, seen, delay)) is not None:
        ids = ", ".join(sorted(str(each) for each in seen.consulted))
        return Report(
            Kind.CONTENT_LOST,
            f"{several}; this one is still listed, and the content of {source} {ids}"
            " is gone: restore it by that id, from a backup",
        )
    why = f"a delete of its {source} here was heard, and the {source}'s content is gone"
    place = f"{family.listing.name}: {family.place(seen.slot)}"
    return Repair(Difference(Kind.EXTRA_ROW), f"{place} is not in the truth; {why}", True)


def _one_delete_took_several(family: Family, seen: Seen, delay: Micros) -> str | None:
    """That it did, or may have unheard, in words; None where nothing speaks for it."""
    memory, source = seen.memory, family.truth.source.label
    row, rows = family.key[-1].label, family.key[-1].plural
    if _others_lost(seen, _since(family, seen, delay), delay):
        lost = _listed(_lost(seen))
        return f"one delete may have taken several {rows} of the {source} here (lost: {lost})"
    if memory.complete_at is None and seen.slot in memory.lost_before:
        return (
            f"changes may have been missed since this {row} was read, so one delete may have taken"
            f" other {rows} of the {source} here of which nobody knows"
        )
    return None


def _came_after(seen: Seen) -> bool:
    """Whether the row was written after its message's memory was complete."""
    oldest = min(seen.actual.written.values(), default=None) if seen.actual is not None else None
    complete_at = seen.memory.complete_at
    return complete_at == 0 or (
        complete_at is not None and oldest is not None and oldest > complete_at
    )


def _lost(seen: Seen) -> frozenset[Slot]:
    remembered = seen.memory.known | seen.memory.unsure | {seen.slot}
    return remembered - seen.present


def _listed(slots: frozenset[Slot]) -> str:
    """Without their group, which is one."""
    return ", ".join("/".join(str(part) for part in slot.key[1:]) for slot in sorted(slots))
