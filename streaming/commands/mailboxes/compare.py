"""Compares both tables: whole, then twice the rows that differ, D apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from reconcilers.mailboxes.conflicts import Conflict, conflicts, standing
from reconcilers.mailboxes.plan import Fix, RightSide, plan, removable
from reconcilers.mailboxes.rows import MailboxPath, MailboxRow, PathRow, Sides, Unpaired
from reconcilers.words.errors import Misconfigured

MOST_KEYS = 20_000
"""Most ids and paths that are read again. More differ after a restore, or in a wrong keyspace."""


class BothTables(Protocol):
    """Reads of both tables; `streaming.tables.mailbox_objects.MailboxObjects` is the real one."""

    def mailboxes(self) -> Iterator[MailboxRow]:
        """Every row of `mailbox`."""

    def paths(self) -> Iterator[PathRow]:
        """Every row of `mailboxpathv3`."""

    def look(self, ids: Iterable[UUID], paths: Iterable[MailboxPath]) -> Sides:
        """The rows at these keys, the mailboxes first."""

    def with_messages(self, ids: Iterable[UUID]) -> frozenset[UUID]:
        """Those of these mailboxes that list a message, or have ever given one a uid."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison found: the conflicts with their fixes, and how much was read.

    ``changed`` is the number of conflicts that changed between the looks, and are not judged.
    """

    found: tuple[tuple[Conflict, Fix], ...]
    changed: int
    mailboxes: int
    paths: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares both tables. ``wait`` is called with the number of keys that are read again."""

    tables: BothTables
    right: RightSide
    wait: Callable[[int], None]

    def run(self) -> Compared:
        """Compare. Raises `Misconfigured` if more than `MOST_KEYS` differ, and as the reads do."""
        unpaired, mailboxes, paths = Unpaired(), 0, 0
        for row in self.tables.mailboxes():
            unpaired.add_mailbox(row)
            mailboxes += 1
        for each in self.tables.paths():
            unpaired.add_path(each)
            paths += 1
        if len(unpaired) > MOST_KEYS:
            raise Misconfigured(
                f"{len(unpaired)} ids and paths of {mailboxes} mailboxes and {paths} paths have no"
                f" counterpart, more than {MOST_KEYS}: was a table restored or emptied? Is"
                " cassandra.keyspace right?"
            )
        keys = self._closed(unpaired.ids(), unpaired.paths())
        first = self.tables.look(*keys)
        if not conflicts(first):
            return Compared((), 0, mailboxes, paths)
        self.wait(sum(map(len, keys)))
        stand = standing(first, self.tables.look(*keys))
        found = tuple((each, self._planned(each)) for each in stand.conflicts)
        return Compared(found, stand.changed, mailboxes, paths)

    def is_right(self, conflict: Conflict) -> bool:
        """Whether the rows of a conflict agree now."""
        keys = self._closed(conflict.ids, conflict.places)
        return not conflicts(self.tables.look(*keys))

    def _planned(self, conflict: Conflict) -> Fix:
        return plan(conflict, self.right, self.tables.with_messages(removable(conflict)))

    def _closed(
        self, ids: frozenset[UUID], paths: frozenset[MailboxPath]
    ) -> tuple[frozenset[UUID], frozenset[MailboxPath]]:
        """These keys, and all that their rows name."""
        known_ids, known_paths = frozenset[UUID](), frozenset[MailboxPath]()
        while ids - known_ids or paths - known_paths:
            told = self.tables.look(ids - known_ids, paths - known_paths).named()
            known_ids, known_paths = known_ids | ids, known_paths | paths
            ids, paths = ids | told[0], paths | told[1]
        return ids, paths
