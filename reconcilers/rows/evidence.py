"""Which removals match what a user did: the evidence for removing an orphan. Pure.

An orphan is a row of the listing that the truth lacks. `evidence_for_removal` says why it may be
removed. Without a reason, `without_evidence` names the class that waits for a person. If only the
content of the source (a message) can decide, it is read afterwards (`by_content`).
"""

from __future__ import annotations

from enum import Enum, auto

from reconcilers.declared.family import Family
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Difference, Kind, Micros, Repair, Report, Row, Slot, Verdict


class ContentFound(Enum):
    """What was found of the content of all sources that may claim a row.

    GONE: no source has a truth row in any group, and then none had content. NOT_KNOWN: content is
    not read here, or could not be read.
    """

    KEPT = auto()
    GONE = auto()
    NOT_KNOWN = auto()


def evidence_for_removal(family: Family, seen: Seen, delay: Micros) -> str | None:
    """Why removing this orphan is what its user did, None if unknown; ``delay`` is D (µs)."""
    memory, slot = seen.memory, seen.slot
    said = _said_by_truth(family, seen)
    if said is not None or not family.remembered:
        return said
    if its_delete_was_heard(family, seen, delay):
        return "a delete of this very row was seen"
    if memory.contradicted or not (memory.holds(slot) or _came_after(seen)):
        return None
    if _never_known(seen):
        return f"the truth never had this {family.key[-1].label}"
    if slot not in memory.known or not heard_since_written(family, seen, delay):
        return None
    return _it_was_meant(family, seen, delay)


def _said_by_truth(family: Family, seen: Seen) -> str | None:
    """Why the truth of its source alone decides; an absence does only in a family without lineage.

    A source without any truth row may have been lost.
    """
    source = family.truth.source.label
    if seen.truths:
        return f"its {source} was read, and gives it no place here"
    if not family.remembered and seen.has_truth and not _truth_lost_its_name(family, seen):
        return f"its {source} was read, and does not name it"
    return None


def _truth_lost_its_name(family: Family, seen: Seen) -> bool:
    """Whether truth that names all there ever was lacks a row that is not older than all of it.

    James writes such a row only after the event that names it. A row without a write time is taken
    for one that is not older.
    """
    written = {} if seen.actual is None else seen.actual.written
    return family.truth.names_all and max(written.values(), default=seen.truth_at) >= seen.truth_at


def _never_known(seen: Seen) -> bool:
    """Whether memory is complete and lacks this row: the truth never had it."""
    return seen.memory.complete and seen.slot not in seen.memory.known


def may_be_unheard(family: Family, seen: Seen, until: Micros, delay: Micros) -> bool:
    """Whether an orphan may be unknown only because its own event is still to come.

    That includes a row without a known source. Every event before ``until`` (µs) has been received;
    ``delay`` is D (µs). A row that is only a key has no write time.
    """
    unknown = _never_known(seen) if seen.consulted else seen.swept
    if seen.actual is None or not unknown:
        return False
    oldest = min(seen.actual.written.values(), default=0)
    return oldest > until and not its_delete_was_heard(family, seen, delay)


def _it_was_meant(family: Family, seen: Seen, delay: Micros) -> str | None:
    """Why a delete meant this row of those that the truth had; None if that is unknown.

    The numbers of deletes and lost rows are not compared: a delete of the listing may be lost, or
    two sessions may have deleted one row. Until the listing was read, rows that a user saw may be
    unknown, too: the truth may have lost one before memory began.
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

    A row whose listing delete was received before that does not count, as when a message comes back
    under a new key. A present row whose delete was received may be of a restored truth.
    """
    deletes = seen.memory.sibling_deletes
    lost = _lost(seen) - {seen.slot}
    unheard = any(_ended_at(seen, each, since, delay) >= since for each in lost)
    return unheard or any(
        max(deletes.get(each, ()), default=since - 1) >= since for each in seen.present
    )


def _ended_at(seen: Seen, other: Slot, unknown: Micros, delay: Micros) -> Micros:
    """When another row ended (µs), by the received delete of it; else ``unknown``."""
    if other in seen.others_listed:  # its user still sees it, and may expunge it
        return unknown
    earliest = seen.memory.ended(other, delay)
    ends = [at for at in seen.memory.sibling_deletes.get(other, ()) if at > earliest]
    return max(ends, default=unknown)


def its_delete_was_heard(family: Family, seen: Seen, delay: Micros) -> bool:
    """Whether a delete was received that named this very row, since it was written.

    An older delete meant an earlier row: one that we removed at a wrong key, or one from before a
    restore, after which keys are assigned again. A truth delete may have named the whole partition.
    It therefore counts only if the row existed by then, whatever the clocks show.
    """
    since, memory = _since(family, seen, delay), seen.memory
    there = max(since, _oldest(family, seen) + delay)
    return any(deleted >= since for deleted in memory.projection_deletes) or any(
        deleted >= there for deleted in memory.row_deletes
    )


def heard_since_written(family: Family, seen: Seen, delay: Micros) -> bool:
    """Whether a delete was received that could have taken the truth's row. ``delay`` is D (µs)."""
    since, memory = _since(family, seen, delay), seen.memory
    deletes = memory.range_deletes | memory.row_deletes | memory.projection_deletes
    return any(deleted >= since for deleted in deletes)


def _since(family: Family, seen: Seen, delay: Micros) -> Micros:
    """The time (µs) from which a delete is later than the row.

    James writes the listing within D after the truth, and two clocks differ by less than another D.
    """
    return max(_oldest(family, seen) - 2 * delay, seen.memory.ended(seen.slot, delay))


def _oldest(family: Family, seen: Seen) -> Micros:
    """The write time (µs) of the oldest cell, 0 if only a late flag change left the row."""
    if seen.actual is None or not _names_its_source(family, seen.actual):
        return 0
    return min(seen.actual.written.values(), default=0)


def _names_its_source(family: Family, row: Row) -> bool:
    return family.is_source_in_key or row.get(str(family.listing.identity)) is not None


def without_evidence(family: Family, seen: Seen, delay: Micros) -> Report:
    """The report of an orphan without evidence, which waits for a person."""
    row, rows = family.key[-1].label, family.key[-1].plural
    source, group = family.truth.source.label, family.group.label
    if not family.remembered and seen.has_truth:
        return Report(
            Kind.ABSENT_WITHOUT_DELETE,
            f"its {source} never named it, although the row is not older than the {source}: an"
            " event was lost, or the truth was restored from an older copy",
        )
    if not family.remembered:
        return Report(
            Kind.ABSENT_WITHOUT_DELETE,
            f"its {source} has no truth row at all: the truth was lost or deleted, or restored from"
            " an older copy",
        )
    if not heard_since_written(family, seen, delay):
        unheard = f"no delete of the {source} in this {group} was received since"
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
    """Whether only content can decide: a delete was received, and which row it meant is unknown.

    Without lineage: whether the source has no truth row at all.
    """
    if not isinstance(verdict, Report) or not seen.consulted:
        return False
    if not family.remembered:
        return verdict.kind is Kind.ABSENT_WITHOUT_DELETE
    ambiguous = verdict.kind is Kind.AMBIGUOUS_RANGE_DELETE
    return ambiguous and heard_since_written(family, seen, delay)


def by_content(
    family: Family, seen: Seen, content: ContentFound, verdict: Verdict, delay: Micros
) -> Verdict:
    """The verdict on an orphan that `asks_for_content`, after the content was read.

    A row without content cannot be read, so it may be removed. It is reported instead if one delete
    took several rows, or may have: its user may have kept it, and it is the last trace of the
    source.
    """
    if content is not ContentFound.GONE:
        return verdict
    source, owner = family.truth.source.label, family.truth.owner
    place = f"{family.listing.name}: {family.place(seen.slot)}"
    if not family.remembered:
        gone = "content" if owner is None else owner.label
        why = f"its {source} and its {gone} are gone"
        return Repair(Difference(Kind.EXTRA_ROW), f"{place} is not in the truth; {why}")
    if (several := _one_delete_took_several(family, seen, delay)) is not None:
        ids = ", ".join(sorted(str(each) for each in seen.consulted))
        return Report(
            Kind.CONTENT_LOST,
            f"{several}; this one is still listed, and the content of {source} {ids}"
            " is gone: restore it by that id, from a backup",
        )
    why = f"a delete of its {source} here was received, and the {source}'s content is gone"
    return Repair(Difference(Kind.EXTRA_ROW), f"{place} is not in the truth; {why}", True)


def _one_delete_took_several(family: Family, seen: Seen, delay: Micros) -> str | None:
    """Why one delete took several rows, or may have, in words; None if nothing suggests that."""
    memory, source = seen.memory, family.truth.source.label
    row, rows = family.key[-1].label, family.key[-1].plural
    if _others_lost(seen, _since(family, seen, delay), delay):
        lost = _listed(_lost(seen))
        return f"one delete may have taken several {rows} of the {source} here (lost: {lost})"
    if memory.complete_at is None and seen.slot in memory.lost_before:
        return (
            f"changes may have been missed since this {row} was read, so one delete may have taken"
            f" other {rows} of the {source} here that are not known"
        )
    return None


def _came_after(seen: Seen) -> bool:
    oldest = min(seen.actual.written.values(), default=None) if seen.actual is not None else None
    complete_at = seen.memory.complete_at
    return complete_at == 0 or (
        complete_at is not None and oldest is not None and oldest > complete_at
    )


def _lost(seen: Seen) -> frozenset[Slot]:
    remembered = seen.memory.known | seen.memory.unsure | {seen.slot}
    return remembered - seen.present


def _listed(slots: frozenset[Slot]) -> str:
    return ", ".join("/".join(str(part) for part in slot.key[1:]) for slot in sorted(slots))
