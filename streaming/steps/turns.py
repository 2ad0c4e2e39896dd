"""In which order a batch's suspects are examined, where their table takes writes and where not."""

from __future__ import annotations

from collections.abc import Sequence

from reconcilers.words.model import Suspect
from streaming.steps.repair import WRITTEN

CONFIRMED_TOGETHER = 100
"""Suspects confirmed under one C: few, so that the reads are near the writes."""

Suspects = Sequence[Suspect]


def in_turn(waiting: Suspects, tries: int | None) -> tuple[Suspects, Suspects, Suspects]:
    """Who is examined next, who after them, and who only later, as their table refuses.

    ``tries`` is None where it takes writes. Where it refuses, so many of those that differ go first
    (0 or 1); the others are not confirmed.
    """
    if tries is None:
        return waiting[:CONFIRMED_TOGETHER], waiting[CONFIRMED_TOGETHER:], ()
    differ = [each for each in waiting if each.kind in WRITTEN]
    others = [each for each in waiting if each.kind not in WRITTEN]
    if tries and differ:
        return differ[:1], [*differ[1:], *others], ()
    return others[:CONFIRMED_TOGETHER], others[CONFIRMED_TOGETHER:], differ
