"""The ceiling on repairs a minute, as the driver keeps it: `reconcilers.ceiling` has the rule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from checkpoints.clock import to_micros
from reconcilers.ceiling import Ceiling, Written
from reconcilers.finding import Action
from reconcilers.policy import Admission
from streaming.steps.outcome import Outcome


@dataclass(slots=True)
class WriteCeiling:
    """Lets at most so many repairs through in any minute, of a clock that nobody sets (s)."""

    most: int
    steady: Callable[[], float] = time.monotonic
    _written: Written = field(default_factory=Written)

    def admit(self, admission: Admission, suspects: int) -> Admission:
        """A slice with so many suspects begins."""
        now = to_micros(self.steady())
        if admission.observe or admission.repairs is not None:
            self._written = self._written.reserved(0, now)
            return admission
        left = self._written.left(self.most, now)
        self._written = self._written.reserved(min(left, suspects), now)
        return replace(admission, ceiling=Ceiling(left, self.most))

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """It has ended, with these outcomes."""
        repairs = sum(each.action is Action.REPAIR for each in outcomes)
        self._written = self._written.settled(repairs, to_micros(self.steady()))
