"""At most so many suspects of a slice travel to the driver; the others come back one delay later.

A worker publishes the keys of those again, before the slice is settled, and counts them. So an
incident opens a breaker by its whole number, and what follows is done for a bounded number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from checkpoints.holds import Holds
from reconcilers.declared.family import Family
from reconcilers.words.model import Kind, Suspect

MOST = 10_000
"""Most suspects of a slice that travel, but for a share that has fewer than open a breaker."""

Beyond = Counter[tuple[str, Kind]]
"""How many new differences did not travel, by projection and kind."""


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


def beyond(family: Family, holds: Holds, left: Iterable[Suspect]) -> Beyond:
    """The count of the new differences among those that did not travel, without keys on hold.

    A key that comes back was counted when it was found. Raises `Retryable`.
    """
    found = Beyond()
    new = [each for each in left if not each.looked_again]
    for projection in family.projections:
        its = [each for each in new if each.projection == projection.name]
        held = holds.standing(family, projection.name, [each.slot for each in its]) if its else {}
        found.update(
            (each.projection, each.kind) for each in its if each.kind and each.slot not in held
        )
    return found
