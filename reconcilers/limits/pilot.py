"""A pilot: only what it names is repaired, everything else is held. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from reconcilers.declared.tally import QuotaRoot
from reconcilers.limits.write_target import WriteTarget
from reconcilers.words.model import KeyValue

OwnerOf = Callable[[UUID], QuotaRoot | None]
"""Whose a mailbox is, None when it does not exist. Raises `reconcilers.words.errors.Retryable`."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """What may be repaired: mailboxes that are named, or a named user's; these systems and kinds.

    What is empty sets no limit. Systems are projections and tallies by name. A user's quota is
    theirs, and no mailbox's.
    """

    users: frozenset[str] = frozenset()
    mailboxes: frozenset[UUID] = frozenset()
    systems: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()

    def takes(self, target: WriteTarget, owner: OwnerOf) -> bool:
        """Whether it may be repaired. ``owner`` is asked only where nothing else decides."""
        if target.group is None:
            return True
        meant = _in(self.systems, target.system) and _in(self.kinds, target.kind)
        return meant and self._is_there(target.group, owner)

    def _is_there(self, group: KeyValue, owner: OwnerOf) -> bool:
        if not self.users and not self.mailboxes:
            return True
        if group in self.mailboxes:
            return True
        if not self.users:
            return False
        if isinstance(group, UUID):
            root = owner(group)
            return root is not None and root.user in self.users
        return QuotaRoot.of(str(group)).user in self.users

    def __str__(self) -> str:
        """What it names, as the command takes it."""
        named = (
            ("user", self.users),
            ("mailbox", self.mailboxes),
            ("system", self.systems),
            ("kind", self.kinds),
        )
        return ", ".join(
            f"{what} {', '.join(sorted(map(str, those)))}" for what, those in named if those
        )


def _in(those: Collection[str], one: str | None) -> bool:
    return not those or one in those
