"""A pilot: only what it names is repaired; everything else is held. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from reconcilers.declared.tally import QuotaRoot
from reconcilers.limits.write_target import WriteTarget
from reconcilers.words.model import KeyValue

OwnerOf = Callable[[UUID], QuotaRoot | None]
"""The owner of a mailbox, None without the mailbox. Raises `reconcilers.words.errors.Retryable`."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """What may be repaired: named mailboxes, those of named users, named systems and kinds.

    An empty set is no limit. Systems are names of projections and tallies. A quota belongs to a
    user, not to a mailbox.
    """

    users: frozenset[str] = frozenset()
    mailboxes: frozenset[UUID] = frozenset()
    systems: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()

    def takes(self, target: WriteTarget, owner: OwnerOf) -> bool:
        """Whether the target may be repaired. ``owner`` is called only if nothing else decides."""
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
