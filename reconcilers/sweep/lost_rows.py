"""Rows of the past that no evidence decides: one finding for each reason. Pure.

The truth lacks them. A first sweep of a large installation finds very many. Above a limit, one
finding for each reason stands for all. A person accepts them together, or leaves them:

=======================  =======================================================================
the reason               what is known about the row
=======================  =======================================================================
ambiguous_range_delete   the truth lacks it, and no delete was received since it was written: the
                         truth may have lost it before lineage was complete
absent_without_delete    the truth had it and lost it, and no delete was received
mailbox_without_truth    either, in a mailbox that has lost most of its truth
unresolved               it names no message, and lineage does not have all of the truth
=======================  =======================================================================

Accepting the reason covers the rows that were counted by then. It does not cover a row that was
found later, or whose reason has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from reconcilers.declared.family import Family
from reconcilers.rows.evidence import heard_since_written
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.memory import born_at
from reconcilers.rows.seen import Seen
from reconcilers.words.key import text_of
from reconcilers.words.model import SECOND, KeyValue, Kind, Micros, Report, Slot, Verdict, number_of

COVERED: Mapping[Kind, frozenset[Kind]] = {
    Kind.AMBIGUOUS_RANGE_DELETE: frozenset({Kind.AMBIGUOUS_RANGE_DELETE}),
    Kind.ABSENT_WITHOUT_DELETE: frozenset({Kind.ABSENT_WITHOUT_DELETE}),
    Kind.MAILBOX_WITHOUT_TRUTH: frozenset(
        {Kind.AMBIGUOUS_RANGE_DELETE, Kind.ABSENT_WITHOUT_DELETE, Kind.MAILBOX_WITHOUT_TRUTH}
    ),
    Kind.UNRESOLVED: frozenset(),
}
"""By reason the kinds that its acceptance covers; the keys are all reasons."""


LOST = frozenset({Kind.ABSENT_WITHOUT_DELETE, Kind.MAILBOX_WITHOUT_TRUTH})
"""Reasons that suggest a truth restored from an older copy: they raise an alert."""


def kind_of(reason: Kind) -> Kind:
    """The kind of the finding for all rows with this reason."""
    return Kind.TRUTH_LOST_ROWS if reason in LOST else Kind.PAST_ROWS


def reason_of(family: Family, seen: Seen, verdict: Verdict, delay: Micros) -> Kind | None:
    """The reason to leave a listing row, None if evidence may decide; ``delay`` is D (µs)."""
    if not isinstance(verdict, Report) or seen.actual is None or seen.truths:
        return None
    if verdict.kind is Kind.UNRESOLVED:
        return verdict.kind
    no_delete = {Kind.AMBIGUOUS_RANGE_DELETE, Kind.ABSENT_WITHOUT_DELETE}
    if verdict.kind not in no_delete or heard_since_written(family, seen, delay):
        return None
    return verdict.kind


@dataclass(frozen=True, slots=True)
class LostRow:
    """A left listing row; ``counted_at``: first for this reason, ``seen_at``: last found (µs)."""

    slot: Slot
    reason: Kind
    counted_at: Micros
    seen_at: Micros


def covered(group: Finding | None, row: LostRow | None, reason: Kind) -> frozenset[Kind]:
    """The kinds accepted for a row counted by then whose reason is one of them; else none."""
    until = None if group is None else group.accepted_at
    if row is None or until is None:
        return frozenset()
    kinds = COVERED[row.reason]
    return kinds if reason in kinds and row.counted_at <= until else frozenset()


def place_of(family: Family, reason: Kind) -> Slot:
    """The slot of the finding for all rows with a reason; it is no row's."""
    return family.place_of_number(number_of(f"{kind_of(reason)} {reason}"))


def reason_at(family: Family, slot: Slot) -> Kind | None:
    """The reason whose finding has this slot, None if there is none."""
    return next((each for each in COVERED if place_of(family, each) == slot), None)


@dataclass(frozen=True, slots=True)
class LostRows:
    """The numbers of rows and groups (mailboxes) left for a reason, with example slots.

    ``born`` is when the first and last of their sources were created (µs). ``since`` is when a
    person accepted others for this reason (µs), None if nobody has.
    """

    reason: Kind
    rows: int
    groups: int
    examples: tuple[Slot, ...] = ()
    born: tuple[Micros, Micros] | None = None
    since: Micros | None = None


def together(family: Family, lost: LostRows, now: Micros) -> Finding:
    """The finding for all rows with a reason, counted ``now`` (µs)."""
    place = place_of(family, lost.reason)
    key, system = text_of(place), family.listing.name
    among = ", ".join(text_of(each) for each in lost.examples)
    told = [f"{_what(family, lost)}{_made(family, lost)}, {among} among them"]
    if lost.since is not None:
        told.append("these were found after what a person has accepted")
    told.append(f"`reconcile findings --members {key}` lists them")
    if COVERED[lost.reason]:
        told.append(
            "none is removed before a person accepts them together:"
            f" `reconcile findings --accept {key} --system {system}`, then `reconcile sweep`"
            " hands them over to the stream"
        )
    else:
        told.append("`reconcile sweep` decides on them once it has read the whole truth")
    told.append(f"counters of these {family.group.plural} wait")
    return Finding(
        family=family.name,
        projection=system,
        slot=place,
        source=None,
        kind=kind_of(lost.reason),
        state=State.REPORTED,
        sentence="; ".join(told),
        found_at=now,
        tried_at=now,
    )


def _what(family: Family, lost: LostRows) -> str:
    truth, listing, groups = family.truth.table, family.listing.table, family.group.plural
    number = f"{lost.rows} rows of {lost.groups} {groups}"
    match lost.reason:
        case Kind.ABSENT_WITHOUT_DELETE:
            lost_them = f"{truth} has lost {number} without a delete"
            return f"{lost.reason}: {lost_them}: was it restored from an older copy?"
        case Kind.MAILBOX_WITHOUT_TRUTH:
            return (
                f"{lost.reason}: {truth} has lost most of {lost.groups} {groups}: {lost.rows} rows"
            )
        case Kind.UNRESOLVED:
            return f"{lost.reason}: {number} of {listing} name no {family.truth.source.label}"
        case _:
            unheard = "no delete was received since they were written"
            return f"{lost.reason}: {truth} lacks {number} of {listing}, and {unheard}"


def _made(family: Family, lost: LostRows) -> str:
    """When the sources were created, which shows the age of a copy."""
    if lost.born is None:
        return ""
    first, last = (datetime.fromtimestamp(at // SECOND, UTC) for at in lost.born)
    sources = family.truth.source.plural
    return f" ({sources} made from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC)"


def births(sources: frozenset[KeyValue]) -> list[Micros]:
    """When these sources were created (µs), for those whose id contains it."""
    return [at for at in map(born_at, sources) if at is not None]
