"""Step 5: the verdict on a slot, from the confirming reads. Pure.

The reads are the projection with write times first, and the truth at serial consistency second. For
each reported class a test showed that a write would fight the mail server or undo a user.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.declared.family import Family, Projection
from reconcilers.rows.compare import compare
from reconcilers.rows.deletes import separate
from reconcilers.rows.evidence import (
    evidence_for_removal,
    heard_since_written,
    its_delete_was_heard,
    may_be_unheard,
    without_evidence,
)
from reconcilers.rows.kept import report_of_kept
from reconcilers.rows.only_by import told_by_both_sides
from reconcilers.rows.seen import Seen
from reconcilers.words.model import (
    SECOND,
    Consistent,
    Difference,
    Kind,
    LookAgain,
    Micros,
    Repair,
    Report,
    Slot,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """When a confirmation began (µs, our clock), the delay D (µs), and the frontier.

    All events before ``frontier`` (µs) were looked at; None: all before the confirmation.
    """

    began: Micros
    delay: Micros
    frontier: Micros | None = None

    @property
    def heard_until(self) -> Micros:
        """The time (µs) before which every write's event was received: a write arrives within D."""
        frontier = self.began if self.frontier is None else min(self.frontier, self.began)
        return frontier - self.delay

    def after(self, passes: Micros) -> Moment:
        """The moment ``passes`` (µs) later, with the stream no farther behind."""
        frontier = None if self.frontier is None else self.frontier + passes
        return Moment(self.began + passes, self.delay, frontier)

    @property
    def horizon(self) -> Micros:
        """C − D (µs): all writes up to here have arrived (the assumption of promise 2)."""
        return self.began - self.delay


def judge(
    family: Family,
    projection: Projection,
    seen: Seen,
    moment: Moment,
    accepted: frozenset[Kind] = frozenset(),
) -> Verdict:
    """The verdict; ``accepted`` are kinds that a person has decided to carry out for this slot."""
    difference = compare(family, projection, seen)
    if difference is None:
        return Consistent()
    newest = _newest(seen)
    if newest > moment.began + moment.delay:
        ahead = (newest - moment.began) // SECOND
        return Report(
            Kind.FUTURE_WRITE_TIME,
            f"{difference.kind}, but a cell was written {ahead} s in the future: a clock is wrong",
        )
    if (why := _too_early(family, projection, seen, difference, moment)) is not None:
        return LookAgain(difference, why)
    if projection.only_by:
        return told_by_both_sides(family, projection, seen, difference)
    report = _reported_class(family, projection, seen, difference, moment)
    if report is None and difference.kind is Kind.MISSING_ROW and not projection.is_index:
        report = _shadowed_delete(seen, moment)
    if report is not None and report.kind not in accepted:
        return report
    by_evidence = _is_by_evidence(projection, seen)
    on_memory = by_evidence and _rests_on_memory(family, seen, difference, moment, accepted)
    sentence = describe(family, projection, seen, difference, moment)
    return Repair(difference, sentence, on_memory)


def once_heard(seen: Seen, verdict: Verdict, moment: Moment) -> Verdict:
    """The verdict, or `LookAgain` while events of a delete that a removal rests on may be missing.

    Events of one moment arrive apart. The event of another row that the same delete took may arrive
    later than the truth's.
    """
    if not isinstance(verdict, Repair) or not verdict.rests_on_memory or not seen.consulted:
        return verdict
    late = max(seen.memory.range_deletes, default=0) > moment.heard_until
    if verdict.difference.kind is not Kind.EXTRA_ROW or not late:
        return verdict
    return LookAgain(verdict.difference, "what else its delete took may be on its way")


DECIDED_REMOVALS = frozenset(
    {Kind.EXTRA_ROW, Kind.AMBIGUOUS_RANGE_DELETE, Kind.ABSENT_WITHOUT_DELETE}
)
DECIDED_ADDITIONS = frozenset({Kind.MISSING_ROW, Kind.SHADOWED_DELETE})
"""The kinds whose acceptance replaces lineage. A repair is accepted only while it waits for it."""


def _rests_on_memory(
    family: Family, seen: Seen, difference: Difference, moment: Moment, accepted: frozenset[Kind]
) -> bool:
    """Whether an event of this source that is still to come could make the repair wrong.

    A removal is certain if the truth has a row that says so, or if a delete named this very row;
    otherwise it rests on lineage having no other row or delete. A row near a delete is re-added
    because lineage has no truth delete that meant it. What a person has accepted rests on that
    decision.
    """
    match difference.kind:
        case Kind.EXTRA_ROW:
            certain = bool(seen.truths) or its_delete_was_heard(family, seen, moment.delay)
            decided = bool(DECIDED_REMOVALS & accepted)
            return family.remembered and not certain and not decided
        case Kind.MISSING_ROW:
            near = bool(seen.memory.projection_deletes) or _is_near_a_delete(seen, moment)
            return near and not DECIDED_ADDITIONS & accepted
        case _:
            return False


def cannot_be_read(family: Family, projection: Projection, slot: Slot, why: str) -> Report:
    """The report of a slot that the server cannot read, while it reads others."""
    place = f"{projection.name}: {family.place(slot)}"
    return Report(Kind.UNREADABLE, f"{place} cannot be read, and is not judged: {why}")


def cannot_be_found(family: Family) -> Report:
    """The report of a deleted row that names no source, and of which lineage has none."""
    source, group = family.truth.source.label, family.group.label
    return Report(
        Kind.UNRESOLVED,
        f"a projection row was deleted, its {source} is not remembered and no truth delete"
        f" of its {group} came near; a full comparison is needed: `reconcile"
        " sweep`",
    )


def _newest(seen: Seen) -> Micros:
    rows = seen.truths if seen.actual is None else (seen.actual, *seen.truths)
    return max((at for row in rows for at in row.written.values()), default=0)


def _is_by_evidence(projection: Projection, seen: Seen) -> bool:
    """Whether lineage decides: for the listing, and for an index row of no known message."""
    return not projection.is_index or not seen.consulted


def _too_early(
    family: Family, projection: Projection, seen: Seen, difference: Difference, moment: Moment
) -> str | None:
    """Why the slot cannot be judged yet, None if it can: an explaining event may still come."""
    if _newest(seen) > moment.horizon:
        return "young: written within the delay"
    if difference.kind is not Kind.EXTRA_ROW or seen.truths:
        return None
    if not _absence_is_settled(family, seen, moment):
        return "absent from the truth, and no delete was received: one may be in flight"
    if not _is_by_evidence(projection, seen):
        return None
    if may_be_unheard(family, seen, moment.heard_until, moment.delay):
        return "unknown to the truth: its event may be on its way"
    return None


def _absence_is_settled(family: Family, seen: Seen, moment: Moment) -> bool:
    """Whether a delete was received, or the absence is a delay old (a tombstone has no time)."""
    return heard_since_written(family, seen, moment.delay) or seen.suspected is Kind.EXTRA_ROW


def _reported_class(
    family: Family, projection: Projection, seen: Seen, difference: Difference, moment: Moment
) -> Report | None:
    if projection.is_index:
        return None if seen.consulted or seen.swept else names_no_source(family)
    source = family.truth.source
    match difference.kind:
        case Kind.INCOMPLETE_TRUTH_ROW:
            every = f"that every {source.label} has"
            return Report(difference.kind, f"the truth row lacks cells {every}")
        case Kind.INCOMPLETE_IN_BOTH:
            lacking = ", ".join(difference.columns)
            fact = f"both tables lack {lacking}, which every {source.label} has: nothing to repair"
            return Report(difference.kind, fact)
        case Kind.DUPLICATE_UID:
            ids = ", ".join(sorted(str(truth.get(source.name)) for truth in seen.truths))
            same = " and ".join(column.label for column in family.key)
            return Report(difference.kind, f"{source.plural} {ids} claim the same {same}")
        case Kind.EXTRA_ROW if not projection.keeps:
            return _removal_without_evidence(family, seen, moment)
        case _:
            return report_of_kept(family, projection, seen, difference)


def _shadowed_delete(seen: Seen, moment: Moment) -> Report | None:
    """The report of a truth row that a delete missed only because two clocks differ, or None."""
    if not _is_near_a_delete(seen, moment) or _meant_others(seen, moment.delay):
        return None
    return Report(
        Kind.SHADOWED_DELETE,
        "the truth row outlived a delete of its own by less than a clock difference:"
        " its user deleted it, so it is not re-added",
    )


def _is_near_a_delete(seen: Seen, moment: Moment) -> bool:
    """Whether the row may have outlived a received truth delete: clocks differ by less than D."""
    return any(
        abs(written - deleted) <= moment.delay
        for deleted in seen.memory.range_deletes | seen.memory.row_deletes
        for written in seen.truths[0].written.values()
    )


def _meant_others(seen: Seen, delay: Micros) -> bool:
    """Whether every delete of the source here took another row, and none is known to mean this one.

    That is the case when a message is moved away and comes back within seconds, under a new UID.
    """
    memory = seen.memory
    if memory.heard_of_its_delete:
        return False
    gone = memory.known - seen.present - {seen.slot}
    return separate(memory.range_deletes, delay) <= len(gone)


def _removal_without_evidence(family: Family, seen: Seen, moment: Moment) -> Report | None:
    """The report of an orphan; None if evidence, or the whole truth in lineage, decides."""
    if not seen.consulted:
        return None if seen.swept else names_no_source(family)
    if evidence_for_removal(family, seen, moment.delay) is not None:
        return None
    return without_evidence(family, seen, moment.delay)


def names_no_source(family: Family) -> Report:
    """The report of a row without a known source, while lineage does not have the whole truth."""
    source, row = family.truth.source.label, family.key[-1].label
    sentence = f"the row names no {source} and none is remembered for its {row}"
    return Report(Kind.UNRESOLVED, sentence)


def describe(
    family: Family, projection: Projection, seen: Seen, difference: Difference, moment: Moment
) -> str:
    """One sentence for people: what was seen and what was expected."""
    where = f"{projection.name}: {family.place(seen.slot)}"
    source = family.truth.source
    match difference.kind:
        case Kind.MISSING_ROW:
            held = f"{source.label} {seen.truths[0].get(source.name)}"
            return f"{where} is missing; the truth holds {held}"
        case Kind.EXTRA_ROW if not seen.consulted:
            return (
                f"{where} is of no {source.label}: the whole truth is remembered, and has none here"
            )
        case Kind.EXTRA_ROW if projection.is_index:
            state = "has no place here" if seen.truths else "is gone"
            return f"{where} is for a {source.label} that {state}"
        case Kind.EXTRA_ROW:
            why = evidence_for_removal(family, seen, moment.delay) or "accepted"
            return f"{where} is not in the truth; {why}"
        case _:
            return f"{where} differs in {', '.join(difference.columns)}"
