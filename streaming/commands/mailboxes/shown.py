"""A conflict of mailbox objects as text and as JSON: both sides, what to do, what was done."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from checkpoints.codec import Json
from reconcilers.mailboxes.conflicts import Conflict, ConflictKind, Merge
from reconcilers.mailboxes.plan import Fix, Left
from reconcilers.mailboxes.rows import MAILBOX, PATHS, MailboxRow, PathRow
from reconcilers.words.iso import iso
from reconcilers.words.model import Micros

COLUMNS = ("kind", "outcome", MAILBOX, PATHS, "merges", "writes", "left")
"""What a conflict has as an object."""
MERGING = "/cassandra/mailbox/merging"
"""James's webadmin route that merges one mailbox into another."""


class FixOutcome(StrEnum):
    """What the command did about a conflict."""

    REPORTED = "reported"
    PLANNED = "planned"
    FIXED = "fixed"
    PARTLY_FIXED = "partly_fixed"
    LEFT = "left"


DIFFERS = {
    ConflictKind.ORPHAN_PATH: "the path names an id that has no row in mailbox",
    ConflictKind.MISSING_PATH: "the mailbox is registered at no path, and its own is free",
    ConflictKind.PATH_MISMATCH: "the mailbox names a free path, and is registered at another",
    ConflictKind.ID_MISMATCH: "the path is registered for an id, and another mailbox names it",
    ConflictKind.TWO_PATHS: "one id is registered at two paths",
    ConflictKind.TWO_IDS: "two mailboxes name one path",
    ConflictKind.SWAPPED_PATHS: "mailboxes name each other's paths",
    ConflictKind.INCOMPLETE_ROW: "a row lacks a part of its path, its id or its uidvalidity",
}
WHY_LEFT = {
    Left.NO_SIDE: "mailboxes.right is none: no side is right",
    Left.MERGE: "two ids compete for a path: an operator decides, and merges them",
    Left.TWO_PATHS: "mailboxpathv3 does not say which of the paths is right: mailboxes.right ="
    ' "mailbox" keeps the one that the mailbox names',
    Left.TWO_CLAIMS: "mailbox does not say whose the path is: mailboxes.right ="
    ' "path" gives each mailbox the path that is registered for it',
    Left.HAS_MESSAGES: "the mailbox has had messages, so its last row is not removed: the other"
    " value of mailboxes.right adds the row that is missing",
    Left.INCOMPLETE: "a person completes the row, or deletes it",
}


@dataclass(frozen=True, slots=True)
class ShownConflict:
    """A conflict, its fix with the writes as CQL, and what was done."""

    conflict: Conflict
    fix: Fix
    writes: tuple[str, ...]
    outcome: FixOutcome

    def lines(self) -> Iterator[str]:
        """The conflict for a person."""
        kind = self.conflict.kind
        yield f"{kind}  {self.outcome}: {DIFFERS[kind]}"
        yield from (f"    {_side(row)}" for row in self.conflict.mailboxes)
        yield from (f"    {_side(row)}" for row in self.conflict.paths)
        if self.outcome is FixOutcome.PARTLY_FIXED:
            yield "    a part is left: run `reconcile mailboxes` again"
        elif self.outcome is not FixOutcome.FIXED:
            yield from (f"    left: {WHY_LEFT[each]}" for each in self.fix.left)
            yield from (f"    {line}" for line in _requests(self.conflict))
        if self.outcome is FixOutcome.REPORTED and self.writes:
            yield f"    {len(self.writes)} writes would fix it: --fix --dry-run prints them"
        elif self.outcome is FixOutcome.PLANNED:
            yield from (f"    {each}" for each in self.writes)

    def object(self) -> Json:
        """The conflict for a program; times are µs."""
        return {
            "kind": str(self.conflict.kind),
            "outcome": str(self.outcome),
            MAILBOX: [_row(row) for row in self.conflict.mailboxes],
            PATHS: [_row(row) for row in self.conflict.paths],
            "merges": [_body(each) for each in self.conflict.merges],
            "writes": list(self.writes),
            "left": [str(each) for each in self.fix.left],
        }


def _side(row: MailboxRow | PathRow) -> str:
    written = f"uidvalidity {row.uidvalidity}{_written(row.written)}"
    if isinstance(row, MailboxRow):
        return f"{MAILBOX}: {row.id} is {row.path or 'without a path'}, {written}"
    return f"{PATHS}: {row.path} is {row.id or 'without an id'}, {written}"


def _written(times: Iterable[Micros | None]) -> str:
    known = [each for each in times if each is not None]
    return f", written {iso(max(known))}" if known else ""


def _requests(conflict: Conflict) -> Iterator[str]:
    """The merge requests, after the rows that James needs before."""
    if not conflict.merges:
        return
    destinations = {each.destination for each in conflict.merges}
    for each in sorted(destinations - conflict.by_id.keys()):
        yield (
            f"James refuses a merge into {each} until it has a row in {MAILBOX}: --fix with"
            ' mailboxes.right = "path" adds it'
        )
    one_of = "to merge them, send one of these" if len(destinations) > 1 else "to merge them, send"
    yield f"{one_of} to James's webadmin:"
    yield from (f"    POST {MERGING} {json.dumps(_body(each))}" for each in conflict.merges)


def _body(merge: Merge) -> Json:
    return {"mergeOrigin": str(merge.origin), "mergeDestination": str(merge.destination)}


def _row(row: MailboxRow | PathRow) -> Json:
    path = row.path
    return {
        "mailboxid": None if row.id is None else str(row.id),
        "namespace": None if path is None else path.namespace,
        "user": None if path is None else path.user,
        "name": None if path is None else path.name,
        "uidvalidity": row.uidvalidity,
        "written": list(row.written),
    }
