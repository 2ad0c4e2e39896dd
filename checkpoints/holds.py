"""The holds that persons have put on keys: which stand, and how others ended (the port).

Implementations: `checkpoints.cassandra.CassandraHolds` (the real one) and
`tests.fakes.checkpoints.holds.MemoryHolds` (the fake); one contract test runs against both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from checkpoints.pauses import Resumed
from reconcilers.declared.family import Family
from reconcilers.limits.hold import Hold
from reconcilers.words.model import Slot


class Holds(Protocol):
    """Of one keyspace of ours. Ending one writes cells of its own, so clocks undo nothing."""

    def place(self, hold: Hold) -> None:
        """It stands for every process that asks from now on, when this returns."""

    def standing(self, family: Family, projection: str, slots: Iterable[Slot]) -> dict[Slot, Hold]:
        """Those of these slots that nobody has ended; of several at one slot the oldest."""

    def end(self, hold: Hold, by: Resumed) -> None:
        """A person has released the key: every hold that stands at its slot ends so."""

    def withdraw(self, hold: Hold, by: Resumed) -> None:
        """This one alone ends; others that stand at its slot go on."""

    def all(self, family: Family) -> Iterator[Hold]:
        """All that stand, in no order, each slot once."""
