"""The fake of `checkpoints.holds`, in this process's memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from checkpoints.pauses import Resumed
from reconcilers.declared.family import Family
from reconcilers.limits.hold import Hold
from reconcilers.words.model import Slot


class MemoryHolds:
    """`checkpoints.holds.Holds` in a dictionary."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str, Slot, int], tuple[Hold, Resumed | None]] = {}

    def place(self, hold: Hold) -> None:
        """Keep it; once more is the same."""
        key = hold.family, hold.projection, hold.slot, hold.asked_at
        self._all.setdefault(key, (hold, None))

    def standing(self, family: Family, projection: str, slots: Iterable[Slot]) -> dict[Slot, Hold]:
        wanted = set(slots)
        found = self.all(family)
        return {
            each.slot: each
            for each in found
            if each.projection == projection and each.slot in wanted
        }

    def end(self, hold: Hold, by: Resumed) -> None:
        place = hold.family, hold.projection, hold.slot
        for key, (each, ended) in self._all.items():
            if key[:3] == place and ended is None:
                self._all[key] = each, by

    def withdraw(self, hold: Hold, by: Resumed) -> None:
        key = hold.family, hold.projection, hold.slot, hold.asked_at
        if key in self._all:
            self._all[key] = hold, by

    def all(self, family: Family) -> Iterator[Hold]:
        found: dict[tuple[str, Slot], Hold] = {}
        for each, ended in sorted(self._all.values(), key=lambda one: one[0].asked_at):
            if each.family == family.name and ended is None:
                found.setdefault((each.projection, each.slot), each)
        yield from found.values()
