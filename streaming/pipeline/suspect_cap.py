"""In an incident few suspects of a slice travel to the driver; the others come back after a delay.

A worker publishes the keys of those again, before the slice is settled, and counts them. So an
incident opens a breaker by its whole number, and what follows is done for a bounded number. The
first suspects of those that do not travel are pickled beside their count. The driver takes all of
these unless repairs are held by their breaker, and as many as still may travel if they are.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from checkpoints.holds import Holds
from reconcilers.declared.family import Family
from reconcilers.words.model import Kind, Suspect

MOST = 4_000
"""Most suspects of a slice that travel while the breaker of repairs is open, or opens."""
READY = 10_000
"""Most that it can take beside these otherwise; of a share no fewer than open a breaker."""
TAKEN_TOGETHER = 500
"""The driver takes so many of a share, or none of them."""

NewDifferences = Counter[tuple[str, Kind]]
"""How many new differences, by projection and kind."""


@dataclass(frozen=True, slots=True)
class Cap:
    """How many suspects of a share travel, and how many of the others are pickled."""

    travel: int
    ready: int

    @classmethod
    def of_a_share(cls, shares: int, believed: int) -> Cap:
        """The part of one of so many shares; ``believed`` suspects open no breaker."""
        return cls(max(MOST // shares, 1), max(READY // shares, believed))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Suspects of a share that did not travel: its new differences, and all ``number``, pickled.

    Those that the driver cannot take are not pickled: the number is then 0.
    """

    new: NewDifferences
    number: int = 0
    pickled: bytes = b""

    def suspects(self) -> list[Suspect]:
        """All of them; empty if they are not pickled."""
        return list(pickle.loads(self.pickled)) if self.pickled else []


def split(suspects: Iterable[Suspect], most: int) -> tuple[list[Suspect], list[Suspect]]:
    """The suspects that travel, ``most`` at most, and the others.

    Keys that came back go first, so that none waits for ever. What a later look at the slot alone
    would not find again always travels: what could not be read, and what an event alone named.
    """
    always, again, new = list[Suspect](), list[Suspect](), list[Suspect]()
    for each in suspects:
        found_again = each.kind is not Kind.UNRESOLVED if each.kind else each.looked_again
        if each.unreadable is not None or not found_again:
            always.append(each)
        elif each.looked_again:
            again.append(each)
        else:
            new.append(each)
    left = max(most - len(always), 0)
    others = [*again, *new]
    return [*always, *others[:left]], others[left:]


def left_out(
    family: Family, holds: Holds, left: Sequence[Suspect], ready: int
) -> Iterator[LeftOut]:
    """These suspects, which do not travel; the first ``ready`` of them pickled.

    Keys on hold do not count. A key that comes back was counted when it was found. Raises
    `Retryable`.
    """
    first, others = left[:ready], left[ready:]
    for start in range(0, len(first), TAKEN_TOGETHER):
        part = first[start : start + TAKEN_TOGETHER]
        yield LeftOut(_new(family, holds, part), len(part), pickle.dumps(part))
    if others:
        yield LeftOut(_new(family, holds, others))


def _new(family: Family, holds: Holds, suspects: Iterable[Suspect]) -> NewDifferences:
    found = NewDifferences()
    new = [each for each in suspects if not each.looked_again]
    for projection in family.projections:
        its = [each for each in new if each.projection == projection.name]
        held = holds.standing(family, projection.name, [each.slot for each in its]) if its else {}
        found.update(
            (each.projection, each.kind) for each in its if each.kind and each.slot not in held
        )
    return found
