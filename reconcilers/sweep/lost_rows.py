"""Rows of the past that no evidence decides: one finding for each reason. Pure.

The truth does not have them. A first sweep of a large installation finds very many of them. Of more
than a limit one finding tells for each reason. A person accepts them together, or leaves them:

=======================  =======================================================================
the reason               what is known of the row
=======================  =======================================================================
ambiguous_range_delete   the truth does not have it, and no delete was received since it was
                         written: the truth may have lost it before all was remembered
absent_without_delete    the truth had it and lost it, and no delete was received
mailbox_without_truth    either, in a mailbox that has lost most of its truth
unresolved               it names no message, and not all of the truth is remembered
=======================  =======================================================================

To accept is to accept the reason, for the rows that were counted by then: not for a row that was
found later, nor for one whose reason is another one by now.
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
"""The classes that a person's word on a reason covers; the keys are all reasons."""


LOST = frozenset({Kind.ABSENT_WITHOUT_DELETE, Kind.MAILBOX_WITHOUT_TRUTH})
"""Reasons that look as if the truth had been restored from an older copy: somebody is called."""


def kind_of(reason: Kind) -> Kind:
    """The class of the finding of all rows that are left for a reason."""
    return Kind.TRUTH_LOST_ROWS if reason in LOST else Kind.PAST_ROWS


def reason_of(family: Family, seen: Seen, verdict: Verdict, delay: Micros) -> Kind | None:
    """The reason for which a row of the listing is left, None for what evidence may decide.

    ``delay`` is D (µs).
    """
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
    """A row of the listing that is left for a reason.

    ``counted_at`` is when a sweep counted it first for this reason, ``seen_at`` when one found it
    last (µs).
    """

    slot: Slot
    reason: Kind
    counted_at: Micros
    seen_at: Micros


def covered(group: Finding | None, row: LostRow | None, reason: Kind) -> frozenset[Kind]:
    """The classes that a person has accepted for a row, by its reason's finding.

    None of them unless the row was counted before that, and its reason now is one of them.
    """
    if group is None or row is None or not group.accepted or group.next_look is None:
        return frozenset()
    kinds = COVERED[row.reason]
    return kinds if reason in kinds and row.counted_at <= group.next_look else frozenset()


def place_of(family: Family, reason: Kind) -> Slot:
    """Where the finding of all rows that are left for a reason stands; no row's place."""
    return family.place_of_number(number_of(f"{kind_of(reason)} {reason}"))


def reason_at(family: Family, slot: Slot) -> Kind | None:
    """The reason whose finding stands there."""
    return next((each for each in COVERED if place_of(family, each) == slot), None)


@dataclass(frozen=True, slots=True)
class LostRows:
    """So many rows of so many groups (mailboxes), with some of them; when their sources were made.

    ``since`` is when a person accepted others for the same reason (µs), None where nobody has.
    """

    reason: Kind
    rows: int
    groups: int
    examples: tuple[Slot, ...] = ()
    born: tuple[Micros, Micros] | None = None
    since: Micros | None = None


def together(family: Family, lost: LostRows, now: Micros) -> Finding:
    """The finding of all rows that are left for a reason, as they were counted ``now`` (µs)."""
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
    """When the sources were made: that tells how old a copy is."""
    if lost.born is None:
        return ""
    first, last = (datetime.fromtimestamp(at // SECOND, UTC) for at in lost.born)
    sources = family.truth.source.plural
    return f" ({sources} made from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC)"


def births(sources: frozenset[KeyValue]) -> list[Micros]:
    """When these sources were made (µs), of those that tell it."""
    return [at for at in map(born_at, sources) if at is not None]
