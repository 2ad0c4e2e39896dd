"""Rows that keep what no other table has: which differences are reported. Pure.

The row of an attachment has the id of its content, and no other table has that. So such a row is
never added, and never removed either: sources may share it, as messages of an older James do, and
one that was not read may still refer to it. Only its copied cells are corrected.
"""

from __future__ import annotations

from reconcilers.declared.family import Family, Projection
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Difference, Kind, Report, Verdict


def report_of_kept(
    family: Family, projection: Projection, seen: Seen, difference: Difference
) -> Report | None:
    """The report of a difference that no write of ours can repair, None for the others.

    A row that names no source may be a user's (`asks_for_user`).
    """
    if not projection.keeps:
        return None
    where, source = f"{projection.name}: {family.place(seen.slot)}", family.truth.source
    match difference.kind:
        case Kind.MISSING_ROW | Kind.MISSING_CONTENT:
            ids = ", ".join(sorted(str(each.get(source.name)) for each in seen.truths))
            lacking = ", ".join(difference.columns)
            fact = f"lacks {lacking}" if lacking else "is missing"
            told = f"{where} {fact}, and {source.label} {ids} names it"
            return Report(Kind.MISSING_CONTENT, f"{told}: restore it from a backup")
        case Kind.EXTRA_ROW if seen.consulted:
            ids = ", ".join(sorted(str(each) for each in seen.consulted))
            told = f"{where} names {source.label} {ids}, which is gone or does not name it"
            return Report(Kind.LEFT_OVER, f"{told}: it is kept, another may refer to it")
        case Kind.EXTRA_ROW:
            users = family.truth.users
            owned = f", and {users.table} names no owner" if users else ""
            return Report(Kind.UNRESOLVED, f"{where} names no {source.label}{owned}")
        case _:
            return None


def asks_for_user(projection: Projection, seen: Seen, verdict: Verdict) -> bool:
    """Whether a kept row that names no source is right if a user owns it, such as an upload.

    It is right, too, if James does not record owners.
    """
    unnamed = isinstance(verdict, Report) and verdict.kind is Kind.UNRESOLVED
    return unnamed and not seen.consulted and bool(projection.keeps)


def asks_for_owner(family: Family, verdict: Verdict) -> bool:
    """Whether missing content matters only if a source still exists.

    James deletes the attachments of a message that has no place any more before its content.
    """
    missing = isinstance(verdict, Report) and verdict.kind is Kind.MISSING_CONTENT
    return missing and family.truth.owner is not None
