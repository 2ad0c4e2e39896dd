"""The suspects of one batch: each slot of a projection once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconcilers.words.model import Slot, Suspect


def came_back(suspects: Iterable[Suspect]) -> int:
    """At how many slots there are suspects that came back."""
    return len({each.slot for each in suspects if each.looked_again})


def each_once(suspects: Iterable[Suspect]) -> list[Suspect]:
    """One suspect for each slot of a projection; several looks may have found it.

    If a slot were examined twice in a batch, its own repair would at once look like one that held.
    """
    found: dict[tuple[str, Slot], Suspect] = {}
    for suspect in suspects:
        place = suspect.projection, suspect.slot
        before = found.get(place)
        found[place] = suspect if before is None else _merged(before, suspect)
    return list(found.values())


def _merged(one: Suspect, other: Suspect) -> Suspect:
    oldest = [at for at in (one.oldest, other.oldest) if at is not None]
    return replace(
        one,
        sources=one.sources | other.sources,
        kind=one.kind or other.kind,
        oldest=min(oldest, default=None),
        looked_again=one.looked_again or other.looked_again,
        suspected=one.suspected or other.suspected,
        unreadable=one.unreadable or other.unreadable,
    )
