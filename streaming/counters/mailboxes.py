"""What counters make of slots: they sum up mailboxes, so they hear of messages only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from uuid import UUID

from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family
from reconcilers.words.model import KeyValue

SUMMED_UP = frozenset(family.truth.table for family in FAMILIES if family.tallies)
"""The truths that are."""


def chunks_of(
    family: Family, keys: Iterable[tuple[KeyValue, ...]], width: int
) -> dict[UUID, set[int]]:
    """The chunks of UIDs that the slots of these keys of a family are in, by mailbox."""
    found: dict[UUID, set[int]] = defaultdict(set)
    if family.truth.table in SUMMED_UP:
        for mailboxid, uid in keys:
            assert isinstance(mailboxid, UUID)
            assert isinstance(uid, int)
            found[mailboxid].add(uid // width)
    return found


def mailboxes_of(family: Family, groups: Mapping[KeyValue, int]) -> Counter[UUID]:
    """How many changes each mailbox had, of the groups of a family."""
    if family.truth.table not in SUMMED_UP:
        return Counter()
    pairs = groups.items()
    return Counter({group: number for group, number in pairs if isinstance(group, UUID)})
