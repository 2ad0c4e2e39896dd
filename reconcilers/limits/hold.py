"""A hold: a person wants one key to be observed only, until it is released. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.words.model import Micros, Slot
from reconcilers.words.waiting import Wait, Waiting

ON_HOLD = "on hold by"


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing is repaired at ``slot`` of a projection or tally; requested at ``asked_at`` (µs)."""

    family: str
    projection: str
    slot: Slot
    asked_at: Micros
    who: str
    reason: str

    def __str__(self) -> str:
        return f"{ON_HOLD} {self.who}: {self.reason}; `reconcile findings --release` ends it"

    @property
    def waiting(self) -> Waiting:
        """What a finding at its slot waits for."""
        return Waiting(Wait.HOLD, str(self))
