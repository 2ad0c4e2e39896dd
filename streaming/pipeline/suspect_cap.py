"""In an incident few suspects of a slice travel to the driver; the others come back after a delay.

A worker publishes the keys of those again, before the slice is settled, and counts them. So an
incident opens a breaker by its whole number, and what follows is done for a bounded number. The
suspects of a share that a breaker may believe are pickled beside the count: if none opens, the
driver takes them at once.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from checkpoints.holds import Holds
from reconcilers.declared.family import Family
from reconcilers.words.model import Kind, Suspect

MOST = 4_000
"""Most suspects of a slice that travel while the breaker of repairs is open, or opens."""

NewDifferences = Counter[tuple[str, Kind]]
"""How many new differences, by projection and kind."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The suspects of a share that did not travel: its new differences, and all, pickled.

    Nothing is pickled of a share that no breaker believes.
    """

    new: NewDifferences
    pickled: bytes = b""

    def suspects(self) -> list[Suspect]:
        """All of them; empty if nothing is pickled."""
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


def left_out(family: Family, holds: Holds, left: list[Suspect], believed: int) -> LeftOut:
    """These suspects, which do not travel; pickled if they are no more than ``believed``.

    Keys on hold do not count. A key that comes back was counted when it was found. Raises
    `Retryable`.
    """
    found = NewDifferences()
    new = [each for each in left if not each.looked_again]
    for projection in family.projections:
        its = [each for each in new if each.projection == projection.name]
        held = holds.standing(family, projection.name, [each.slot for each in its]) if its else {}
        found.update(
            (each.projection, each.kind) for each in its if each.kind and each.slot not in held
        )
    return LeftOut(found, pickle.dumps(left) if len(left) <= believed else b"")
