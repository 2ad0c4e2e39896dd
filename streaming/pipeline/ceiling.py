"""The ceiling on repairs a minute, as the driver keeps it; see `reconcilers.limits.ceiling`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from checkpoints.clock import to_micros
from reconcilers.limits.ceiling import Ceiling, Written
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Action
from streaming.steps.outcome import Outcome


@dataclass(slots=True)
class WriteCeiling:
    """Admits at most ``most`` repairs in any minute of the monotonic clock ``steady`` (s)."""

    most: int
    steady: Callable[[], float] = time.monotonic
    _written: Written = field(default_factory=Written)

    def left(self) -> Ceiling:
        """How many repairs this minute has left."""
        now = to_micros(self.steady())
        return Ceiling(self._written.left(self.most, now), self.most)

    def reserve(self, admission: Admission, suspects: int) -> None:
        """Reserve what a slice with so many suspects may write."""
        left = 0 if admission.ceiling is None else admission.ceiling.now
        self._written = self._written.reserved(min(left, suspects), to_micros(self.steady()))

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """Replace the reservation by the repairs among these outcomes."""
        repairs = sum(each.action is Action.REPAIR for each in outcomes)
        self._written = self._written.settled(repairs, to_micros(self.steady()))
