"""The pauses that persons asked for: which stand, and all that ever were (the port).

Implementations: `checkpoints.cassandra.CassandraPauses` (the real one) and
`tests.fakes.checkpoints.pauses.MemoryPauses` (the fake); one contract test runs against both.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from reconcilers.limits.pause import Pause
from reconcilers.words.model import Micros


@dataclass(frozen=True, slots=True)
class Resumed:
    """How a pause was ended: when (µs), by whom, why."""

    at: Micros
    who: str
    reason: str


class Pauses(Protocol):
    """Of one installation. Ending one writes cells of its own, so clocks undo nothing."""

    def begin(self, pause: Pause) -> None:
        """It stands for every process that asks from now on, when this returns."""

    def replace(self, before: Collection[Pause], pause: Pause, by: Resumed) -> None:
        """It stands in place of those before, which are ended: all of it, or nothing."""

    def standing(self) -> tuple[Pause, ...]:
        """Those that nobody has ended, oldest first; the time of some may have come."""

    def end(self, pause: Pause, by: Resumed) -> None:
        """A person goes on. Who ends it once more changes what is told of its end, no more."""

    def history(self) -> tuple[tuple[Pause, Resumed | None], ...]:
        """All that ever were, oldest first, each with its end."""
