"""Rows that only a command repairs: when a difference is reported, and in which words. Pure.

Neither table of mailbox objects is known to be right, so each difference is reported with both
sides. James writes several rows for one operation. What is present has a write time and is judged
once that is older than the delay. What is absent has none: it is reported if two looks, a delay
apart, have found it absent.
"""

from __future__ import annotations

from reconcilers.declared.family import Family, Projection
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Difference, Kind, LookAgain, Repair

ABSENT = frozenset({Kind.MISSING_ROW, Kind.EXTRA_ROW})
"""The kinds of which one side is absent."""


def told_by_both_sides(
    family: Family, projection: Projection, seen: Seen, difference: Difference
) -> LookAgain | Repair:
    """The verdict on a difference: its command repairs it, unless its first look was just now."""
    if difference.kind in ABSENT and seen.suspected is not difference.kind:
        return LookAgain(difference, "absent on one side: a change may be under way")
    return Repair(difference, _sentence(family, projection, seen, difference))


def _sentence(family: Family, projection: Projection, seen: Seen, difference: Difference) -> str:
    """What each side has at this slot."""
    source = family.truth.source
    where = f"{projection.name}: {family.place(seen.slot)}"
    named = ", ".join(sorted(str(each.get(source.name)) for each in seen.truths))
    registered = None if seen.actual is None else seen.actual.get(str(projection.identity))
    match difference.kind:
        case Kind.MISSING_ROW:
            return f"{where} is not registered, and {source.label} {named} names it"
        case Kind.EXTRA_ROW if registered is None:
            return f"{where} is registered for no {source.label}"
        case Kind.EXTRA_ROW:
            state = "names another path" if seen.has_truth else "does not exist"
            return f"{where} is registered for {source.label} {registered}, which {state}"
        case Kind.DUPLICATE_UID:
            there = "is not registered" if registered is None else f"is {registered}'s"
            return f"{where} {there}, and {source.plural} {named} name it"
        case _:
            there = f"is registered for {source.label} {registered}"
            return f"{where} {there}, and {source.label} {named} names it"
