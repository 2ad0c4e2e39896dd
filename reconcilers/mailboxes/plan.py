"""What an offline fix writes for a conflict, by the side that is right. Pure.

The right side is never written. Under `RightSide.PATH` each row of `mailbox` follows the one path
that is registered for its id. Under `RightSide.MAILBOX` each row of `mailboxpathv3` follows the one
mailbox that names its path. What a row becomes depends on the right side alone, so a fix that is
killed and started again ends in the same state. A registration is added before another is deleted.

Left alone: two ids that compete for a path (an operator merges them), an id with two paths under
`RightSide.PATH`, and a removal whose mailbox still lists messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypeVar
from uuid import UUID

from reconcilers.mailboxes.conflicts import Conflict
from reconcilers.mailboxes.rows import MAILBOX, PATHS, MailboxPath

Known = TypeVar("Known")


class RightSide(StrEnum):
    """The side that is right where the tables differ: a setting."""

    PATH = "path"
    MAILBOX = "mailbox"
    NONE = "none"

    def lets_write(self, table: str) -> bool:
        """Whether a fix may write this table: only the one that is not right."""
        return {RightSide.PATH: MAILBOX, RightSide.MAILBOX: PATHS}.get(self) == table


class Left(StrEnum):
    """Why a fix leaves a conflict, or a part of it."""

    NO_SIDE = "no_side_is_right"
    MERGE = "needs_a_merge"
    TWO_PATHS = "two_paths_are_registered"
    TWO_CLAIMS = "two_mailboxes_name_the_path"
    HAS_MESSAGES = "has_messages"
    INCOMPLETE = "incomplete_row"


class _ToPaths:
    __slots__ = ()
    table: ClassVar[str] = PATHS


class _ToMailbox:
    __slots__ = ()
    table: ClassVar[str] = MAILBOX


@dataclass(frozen=True, slots=True)
class AddPath(_ToPaths):
    """Register a mailbox at a path that is free."""

    path: MailboxPath
    id: UUID
    uidvalidity: int


@dataclass(frozen=True, slots=True)
class SetPathId(_ToPaths):
    """Register another mailbox at a path, if it still names the one that was ``seen``."""

    path: MailboxPath
    seen: UUID
    id: UUID
    uidvalidity: int


@dataclass(frozen=True, slots=True)
class DeletePath(_ToPaths):
    """Delete a registration, if it still names the id that was ``seen``."""

    path: MailboxPath
    seen: UUID


@dataclass(frozen=True, slots=True)
class AddMailbox(_ToMailbox):
    """Add the row of an id that has none."""

    id: UUID
    path: MailboxPath
    uidvalidity: int


@dataclass(frozen=True, slots=True)
class SetMailboxPath(_ToMailbox):
    """Change the path of a mailbox, if it still names the one that was ``seen``."""

    id: UUID
    seen: MailboxPath
    path: MailboxPath


@dataclass(frozen=True, slots=True)
class DeleteMailbox(_ToMailbox):
    """Delete the row of a mailbox, if it still names the path that was ``seen``."""

    id: UUID
    seen: MailboxPath


MailboxWrite = AddPath | SetPathId | DeletePath | AddMailbox | SetMailboxPath | DeleteMailbox
"""One write of a fix. Only `plan` builds it."""


@dataclass(frozen=True, slots=True)
class Fix:
    """The writes for a conflict in their order, and why the rest of it is left alone."""

    writes: tuple[MailboxWrite, ...] = ()
    left: tuple[Left, ...] = ()


def removable(conflict: Conflict) -> frozenset[UUID]:
    """The ids of which it must be known whether they had messages: each has a row on one side."""
    return conflict.ids - (conflict.by_id.keys() & conflict.registered.keys())


def plan(conflict: Conflict, right: RightSide, with_messages: Set[UUID]) -> Fix:
    """The writes that make the other side follow the right one.

    ``with_messages``: the ids of `removable` that have, or had, messages.
    """
    if conflict.incomplete:
        return Fix(left=(Left.INCOMPLETE,))
    if right is RightSide.NONE:
        return Fix(left=(Left.MERGE if conflict.merges else Left.NO_SIDE,))
    follow = _follow_paths if right is RightSide.PATH else _follow_mailboxes
    found = list(follow(conflict, with_messages))
    writes = [each for each in found if not isinstance(each, Left)]
    writes.sort(key=lambda each: isinstance(each, DeletePath | DeleteMailbox))  # deletes last
    left = dict.fromkeys(each for each in found if isinstance(each, Left))
    return Fix(tuple(writes), tuple(left))


def _follow_paths(conflict: Conflict, with_messages: Set[UUID]) -> Iterator[MailboxWrite | Left]:
    for id_ in sorted(conflict.ids):
        paths, row = conflict.registered.get(id_, []), conflict.by_id.get(id_)
        if len(paths) > 1:
            yield Left.TWO_PATHS
        elif not paths:
            assert row is not None, "an id has a row on one side"
            yield _unregistered(conflict, id_, with_messages)
        elif row is None:
            (path,) = paths
            yield AddMailbox(id_, path, _known(conflict.by_path[path].uidvalidity))
        elif row.path not in paths:
            (path,) = paths
            yield SetMailboxPath(id_, _known(row.path), path)


def _unregistered(conflict: Conflict, id_: UUID, with_messages: Set[UUID]) -> MailboxWrite | Left:
    """What happens to a mailbox that no path names, if the paths are right."""
    path = _known(conflict.by_id[id_].path)
    if path in conflict.by_path or len(conflict.claims[path]) > 1:
        return Left.MERGE
    return Left.HAS_MESSAGES if id_ in with_messages else DeleteMailbox(id_, path)


def _follow_mailboxes(
    conflict: Conflict, with_messages: Set[UUID]
) -> Iterator[MailboxWrite | Left]:
    blocked = _blocked(conflict)
    for path in sorted(conflict.places):
        row = conflict.by_path.get(path)
        if path in blocked:
            yield blocked[path]
        elif path not in conflict.claims:
            assert row is not None, "a path has a row on one side"
            id_ = _known(row.id)
            yield Left.HAS_MESSAGES if id_ in with_messages else DeletePath(path, id_)
        else:
            (id_,) = conflict.claims[path]
            uidvalidity = _known(conflict.by_id[id_].uidvalidity)
            if row is None:
                yield AddPath(path, id_, uidvalidity)
            elif row.id != id_:
                yield SetPathId(path, _known(row.id), id_, uidvalidity)


def _blocked(conflict: Conflict) -> dict[MailboxPath, Left]:
    """The paths whose rows must stay, with the reasons, if the mailboxes are right.

    Ids compete for the path, or the registered mailbox would have no path then: the one that it
    names is blocked itself.
    """
    blocked = dict[MailboxPath, Left]()
    for path, ids in conflict.claims.items():
        row = conflict.by_path.get(path)
        if len(ids) > 1 and not conflict.merges:
            blocked[path] = Left.TWO_CLAIMS
        elif len(ids) > 1 or (row is not None and row.id not in conflict.by_id):
            blocked[path] = Left.MERGE
    named = {id_: row.path for id_, row in conflict.by_id.items()}
    while more := {
        row.path: blocked[own]
        for row in conflict.paths
        if row.path not in blocked and (own := named.get(_known(row.id))) in blocked
    }:
        blocked |= more
    return blocked


def _known(cell: Known | None) -> Known:
    """A cell of a row that is complete."""
    assert cell is not None, "an incomplete row is left alone"
    return cell
