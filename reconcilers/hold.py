"""A hold: a person wants one key left alone, observed only, until it is released. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.model import Micros, Slot

ON_HOLD = "on hold by"


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing is repaired at ``slot`` of a projection or tally; asked for at a time (µs)."""

    family: str
    projection: str
    slot: Slot
    asked_at: Micros
    who: str
    reason: str

    def __str__(self) -> str:
        """As it follows *held:* in a sentence."""
        return f"{ON_HOLD} {self.who}: {self.reason}; `reconcile findings --release` ends it"


def waits_for_release(sentence: str) -> bool:
    """Whether a finding with this sentence is held by a hold of its key."""
    return f": {ON_HOLD} " in sentence


def without_hold(sentence: str) -> str:
    """What such a sentence says of the difference itself; any other as it is."""
    about, held, _ = sentence.partition(f": {ON_HOLD} ")
    return about.rpartition("; ")[0] if held else about
