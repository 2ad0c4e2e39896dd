"""What a process may write of its share of a slice: asked again before each write."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from reconcilers.family import Projection
from reconcilers.model import Kind, Micros
from reconcilers.pause import covering
from reconcilers.policy import Admission

ABOVE = "this minute has had its repairs (repair.writes_per_minute)"
"""Why a repair comes back in a later minute."""


@dataclass(slots=True)
class Permit:
    """What the driver lets through, and whether it still stands.

    ``withdrawn`` says why nothing more may be judged or written: this process's own clock has moved
    since it measured the nodes', or it is being stopped; None while all is well. ``pauses`` says
    why repairs of what it names are paused by a person, as of a second ago at most.
    """

    admission: Admission
    withdrawn: Callable[[], str | None]
    pauses: Callable[[Collection[str]], str | None]
    _asked: int = 0

    def paused(self, projection: Projection, kind: Kind) -> str | None:
        """Why a person lets no such repair be written now. Raises `Retryable` if nobody knows."""
        return None if self.admission.observe else self.pauses(covering(projection, kind))

    def admits(self, projection: Projection, kind: Kind) -> Admission:
        """What is let through now: nothing of what is paused."""
        held = self.admission.repairs or self.paused(projection, kind)
        return replace(self.admission, repairs=held)

    def wait(self) -> Micros:
        """How long (µs) the next repair must wait; 0: it may be written now."""
        ceiling = self.admission.ceiling
        if ceiling is None:
            return 0
        self._asked += 1
        return ceiling.wait(self._asked - 1)
