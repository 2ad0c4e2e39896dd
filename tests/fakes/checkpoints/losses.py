"""The fake of `checkpoints.losses`, in this process's memory."""

from __future__ import annotations

from checkpoints.losses import Loss
from reconcilers.words.model import Micros


class MemoryLosses:
    """`checkpoints.losses.Losses` in a set."""

    def __init__(self) -> None:
        self._all: set[Loss] = set()

    def record(self, loss: Loss) -> None:
        self._all.add(loss)

    def since(self, at: Micros) -> tuple[Loss, ...]:
        found = (each for each in self._all if each.at >= at)
        return tuple(sorted(found, key=lambda each: (each.at, each.why), reverse=True))
