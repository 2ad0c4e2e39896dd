"""Conflicts between `mailbox` and `mailboxpathv3`: rows of both that belong together. Pure.

Two looks decide, each of which reads the mailboxes first and the paths after them. James writes a
new path before the mailbox that names it, and deletes a path before it rewrites or deletes the
mailbox. If all rows of a conflict are equal in both looks, with their write times, and the second
look begins D after the end of the first, no operation in flight explains it: one that the first
look met has ended, and would have rewritten the mailbox (`tests/property/test_mailboxes.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from uuid import UUID

from reconcilers.mailboxes.rows import MailboxPath, MailboxRow, PathRow, Sides

Vertex = UUID | MailboxPath


class ConflictKind(StrEnum):
    """How the rows of a conflict differ."""

    ORPHAN_PATH = "orphan_path"
    """A path names an id that has no row in `mailbox`."""
    MISSING_PATH = "missing_path"
    """A mailbox is registered at no path, and its own path is free."""
    PATH_MISMATCH = "path_mismatch"
    """A mailbox names a free path, and is registered at another."""
    ID_MISMATCH = "id_mismatch"
    """A path is registered for one id, and the mailbox that names the path has another."""
    TWO_PATHS = "two_paths_of_one_id"
    TWO_IDS = "two_ids_of_one_path"
    """Two mailboxes name one path."""
    SWAPPED_PATHS = "swapped_paths"
    """Mailboxes name each other's paths."""
    INCOMPLETE_ROW = "incomplete_row"
    """A row lacks a part of its path, its id or its uidvalidity."""


@dataclass(frozen=True, slots=True, order=True)
class Merge:
    """A merge that an operator may request of James: all of ``origin`` goes to ``destination``."""

    origin: UUID
    destination: UUID


@dataclass(frozen=True)
class Conflict:
    """All rows of both tables that are connected by an id or a path, at least one unpaired."""

    mailboxes: tuple[MailboxRow, ...]
    paths: tuple[PathRow, ...]

    @cached_property
    def by_id(self) -> dict[UUID, MailboxRow]:
        """The rows of `mailbox`."""
        return {row.id: row for row in self.mailboxes}

    @cached_property
    def by_path(self) -> dict[MailboxPath, PathRow]:
        """The rows of `mailboxpathv3`."""
        return {row.path: row for row in self.paths}

    @cached_property
    def claims(self) -> dict[MailboxPath, list[UUID]]:
        """The mailboxes that name each path."""
        found: dict[MailboxPath, list[UUID]] = defaultdict(list)
        for row in self.mailboxes:
            if row.path is not None:
                found[row.path].append(row.id)
        return dict(found)

    @cached_property
    def registered(self) -> dict[UUID, list[MailboxPath]]:
        """The paths that are registered for each id."""
        found: dict[UUID, list[MailboxPath]] = defaultdict(list)
        for row in self.paths:
            if row.id is not None:
                found[row.id].append(row.path)
        return dict(found)

    @property
    def ids(self) -> frozenset[UUID]:
        """Every id of its rows."""
        return frozenset(self.by_id) | frozenset(self.registered)

    @property
    def places(self) -> frozenset[MailboxPath]:
        """Every path of its rows."""
        return frozenset(self.by_path) | frozenset(self.claims)

    @property
    def incomplete(self) -> bool:
        """Whether a row lacks a cell."""
        lacks = any(row.path is None or row.uidvalidity is None for row in self.mailboxes)
        return lacks or any(row.id is None or row.uidvalidity is None for row in self.paths)

    @property
    def kind(self) -> ConflictKind:
        """The gravest difference of its rows."""
        return next(kind for kind, found in self._signs() if found)

    def _signs(self) -> Iterator[tuple[ConflictKind, bool]]:
        claims, registered = self.claims.values(), self.registered.values()
        yield ConflictKind.INCOMPLETE_ROW, self.incomplete
        yield ConflictKind.TWO_IDS, any(len(ids) > 1 for ids in claims)
        yield ConflictKind.SWAPPED_PATHS, self._is_a_permutation()
        others = (self.claims.get(row.path, [row.id]) != [row.id] for row in self.paths)
        yield ConflictKind.ID_MISMATCH, any(others)
        yield ConflictKind.TWO_PATHS, any(len(paths) > 1 for paths in registered)
        yield ConflictKind.ORPHAN_PATH, not self.mailboxes
        yield ConflictKind.MISSING_PATH, not self.paths
        yield ConflictKind.PATH_MISMATCH, True

    def _is_a_permutation(self) -> bool:
        """Whether each id and each path has one row on both sides; no path is named twice."""
        return (
            self.by_id.keys() == self.registered.keys()
            and self.by_path.keys() == self.claims.keys()
        )

    @cached_property
    def merges(self) -> tuple[Merge, ...]:
        """The merges that an operator chooses from; empty if no two ids compete for a path."""
        return tuple(sorted(self._merges()))

    def _merges(self) -> Iterator[Merge]:
        if self.incomplete:
            return
        for path, ids in self.claims.items():
            unregistered = [each for each in ids if each not in self.registered]
            row = self.by_path.get(path)
            owner = None if row is None else row.id
            if owner is not None and (owner not in self.by_id or owner in ids):
                yield from (Merge(each, owner) for each in unregistered)
            elif len(unregistered) > 1:
                yield from (Merge(a, b) for a in unregistered for b in unregistered if a != b)


def conflicts(look: Sides) -> list[Conflict]:
    """The conflicts of one look, by the least path of each."""
    found = [
        conflict for nodes in _connected(look) if _unpaired(conflict := _conflict_of(look, nodes))
    ]
    return sorted(found, key=lambda each: (sorted(each.places), sorted(each.ids)))


@dataclass(frozen=True, slots=True)
class StandingConflicts:
    """The conflicts that two looks have found, and the number of those that changed between."""

    conflicts: tuple[Conflict, ...]
    changed: int


def standing(first: Sides, second: Sides) -> StandingConflicts:
    """The conflicts whose rows are equal in both looks. The caller waits D between the looks."""
    found = conflicts(first)
    stand = tuple(each for each in found if _equal(each, first, second))
    return StandingConflicts(stand, len(found) - len(stand))


def _equal(conflict: Conflict, first: Sides, second: Sides) -> bool:
    if not (conflict.ids <= first.mailboxes.keys() and conflict.places <= first.paths.keys()):
        return False  # a row names what was not read
    return all(first.mailboxes[each] == second.mailboxes[each] for each in conflict.ids) and all(
        first.paths[each] == second.paths[each] for each in conflict.places
    )


def _conflict_of(look: Sides, nodes: set[Vertex]) -> Conflict:
    mailboxes = (look.mailboxes.get(each) for each in nodes if isinstance(each, UUID))
    paths = (look.paths.get(each) for each in nodes if isinstance(each, MailboxPath))
    return Conflict(
        tuple(sorted((row for row in mailboxes if row is not None), key=lambda row: row.id)),
        tuple(sorted((row for row in paths if row is not None), key=lambda row: row.path)),
    )


def _unpaired(conflict: Conflict) -> bool:
    """Whether a row lacks its counterpart."""
    one = Counter((row.id, row.path) for row in conflict.mailboxes)
    return one != Counter((row.id, row.path) for row in conflict.paths)


def _connected(look: Sides) -> Iterator[set[Vertex]]:
    """The ids and paths of each group of rows."""
    beside: dict[Vertex, set[Vertex]] = defaultdict(set)
    for row in (*look.mailboxes.values(), *look.paths.values()):
        if row is None:
            continue
        own, other = (row.id, row.path) if isinstance(row, MailboxRow) else (row.path, row.id)
        assert own is not None, "a row has its key"
        beside[own] |= set() if other is None else {other}
        if other is not None:
            beside[other].add(own)
    left = set(beside)
    while left:
        found, fresh = set[Vertex](), {left.pop()}
        while fresh:
            found |= fresh
            fresh = {each for node in fresh for each in beside[node]} - found
        left -= found
        yield found
