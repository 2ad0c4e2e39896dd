"""The families as an installation wants them: with the projections that its settings name."""

from __future__ import annotations

from reconcilers.families import FAMILIES
from reconcilers.family import Family, keeping
from streaming.settings import Settings


def families(settings: Settings) -> tuple[Family, ...]:
    """Each family with the projections of ``repair.projections``."""
    return tuple(keeping(family, settings.repair.projections) for family in FAMILIES)
