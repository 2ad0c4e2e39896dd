"""The holds that persons have put on keys, ended ones included (the port)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from checkpoints.pauses import Resumed
from reconcilers.declared.family import Family
from reconcilers.limits.hold import Hold
from reconcilers.words.model import Slot


class Holds(Protocol):
    """The holds of one keyspace. An end has cells of its own, so no clock can undo it."""

    def place(self, hold: Hold) -> None:
        """Store a hold, which is in force for every later reader when this returns."""

    def standing(self, family: Family, projection: str, slots: Iterable[Slot]) -> dict[Slot, Hold]:
        """The holds in force at these slots; of several at one slot the oldest."""

    def end(self, hold: Hold, by: Resumed) -> None:
        """End every hold at the slot of this one: a person has released the key."""

    def withdraw(self, hold: Hold, by: Resumed) -> None:
        """End this hold only; others at its slot stay in force."""

    def all(self, family: Family) -> Iterator[Hold]:
        """All holds in force, unordered, each slot once."""
