"""What a process may write of its share of a slice: asked again before each write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconcilers.model import Micros
from reconcilers.policy import Admission

ABOVE = "this minute has had its repairs (repair.writes_per_minute)"
"""Why a repair comes back in a later minute."""


@dataclass(slots=True)
class Permit:
    """What the driver lets through, and whether it still stands.

    ``withdrawn`` says why nothing more may be judged or written: this process's own clock has moved
    since it measured the nodes', or it is being stopped; None while all is well.
    """

    admission: Admission
    withdrawn: Callable[[], str | None]
    _asked: int = 0

    def wait(self) -> Micros:
        """How long (µs) the next repair must wait; 0: it may be written now."""
        ceiling = self.admission.ceiling
        if ceiling is None:
            return 0
        self._asked += 1
        return ceiling.wait(self._asked - 1)
