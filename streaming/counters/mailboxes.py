"""Mailboxes and chunks of changed slots, for families whose messages counters sum up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from uuid import UUID

from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family
from reconcilers.words.model import KeyValue

SUMMED_UP = frozenset(family.truth.table for family in FAMILIES if family.tallies)
"""The truth tables that counters sum up."""


def chunks_of(
    family: Family, keys: Iterable[tuple[KeyValue, ...]], width: int
) -> dict[UUID, set[int]]:
    """By mailbox, the chunks of ``width`` UIDs that contain these keys; empty if not summed up."""
    found: dict[UUID, set[int]] = defaultdict(set)
    if family.truth.table in SUMMED_UP:
        for mailboxid, uid in keys:
            assert isinstance(mailboxid, UUID)
            assert isinstance(uid, int)
            found[mailboxid].add(uid // width)
    return found


def mailboxes_of(family: Family, groups: Mapping[KeyValue, int]) -> Counter[UUID]:
    """How many changes each mailbox had, from those of a family's groups."""
    if family.truth.table not in SUMMED_UP:
        return Counter()
    pairs = groups.items()
    return Counter({group: number for group, number in pairs if isinstance(group, UUID)})
