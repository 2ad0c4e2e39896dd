"""What a process may write of its share of a slice; asked before each write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from reconcilers.declared.family import Projection
from reconcilers.limits.gate import Admission
from reconcilers.limits.write_target import WriteTarget, repair_of
from reconcilers.words.model import Kind, Micros, Slot
from reconcilers.words.waiting import Wait, Waiting

ABOVE = Waiting(Wait.CEILING, "this minute has had its repairs (repair.writes_per_minute)")
"""Why a repair comes back in a later minute."""


@dataclass(slots=True)
class Permit:
    """What the driver admits, and whether that still holds.

    ``withdrawn`` says why nothing more may be judged or written: this process's clock has moved
    since the nodes' clocks were measured, or the process is being stopped. ``pauses`` says why a
    pause forbids a write, as of at most a second ago. Both are None if nothing is wrong.
    """

    admission: Admission
    withdrawn: Callable[[], str | None]
    pauses: Callable[[WriteTarget], Waiting | None]
    _asked: int = 0

    def paused(self, projection: Projection, kind: Kind, slot: Slot) -> Waiting | None:
        """Why a person has paused this write, None if it may be sent. Raises `Retryable`."""
        return None if self.admission.observe else self.pauses(repair_of(projection, kind, slot))

    def admits(self, projection: Projection, kind: Kind, slot: Slot) -> Admission:
        """The admission for this repair: it waits if it is paused."""
        held = self.admission.repairs_wait or self.paused(projection, kind, slot)
        return replace(self.admission, repairs_wait=held)

    def wait(self) -> Micros:
        """How long (µs) the next repair must wait for the ceiling; 0: it may be sent now."""
        ceiling = self.admission.ceiling
        if ceiling is None:
            return 0
        self._asked += 1
        return ceiling.wait(self._asked - 1)
