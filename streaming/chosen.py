"""The families as an installation wants them: with the projections that its settings name."""

from __future__ import annotations

from reconcilers.families import FAMILIES
from reconcilers.family import Family, keeping
from streaming.settings import Settings


def families(settings: Settings) -> tuple[Family, ...]:
    """Each family with the projections or tallies that are named; the first is of messages."""
    named = (*settings.repair.projections, *settings.tally.projections)
    kept = (keeping(family, named) for family in FAMILIES)
    return tuple(family for family in kept if family.repaired)
