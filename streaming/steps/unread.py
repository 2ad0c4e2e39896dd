"""Whether the truth may have a row that nobody has been able to read: asked before a removal."""

from __future__ import annotations

from checkpoints.journal import Journal
from reconcilers.declared.family import Family
from reconcilers.words.model import Kind, Slot


def may_be_unread(journal: Journal, family: Family, slot: Slot) -> bool:
    """Whether a finding tells that the slot, or its whole group, cannot be read."""
    places = [slot, family.whole_group(slot.group)]
    found = journal.recall(family, family.listing.name, places)
    return any(each.kind is Kind.UNREADABLE for each in found.values())
