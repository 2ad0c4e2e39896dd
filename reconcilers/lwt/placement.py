"""How often an operation was counted by the nodes that answered: once for each copy there. Pure.

The replicas of a row count the phases of its lightweight transactions and serial reads. So an
operation is counted once for each copy of its row on a node that answered, in the data centres that
take part. At LOCAL_SERIAL only the data centre of the client prepares; commits go to all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

ANYWHERE = ""
"""The data centre of copies that a strategy places without regard to data centres."""


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """A number that is known to be between two numbers, both included."""

    low: int
    high: int

    @property
    def text(self) -> str:
        """The range in words; one number if it is known."""
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,}–{self.high:,}"

    def without(self, other: Range) -> Range:
        """What is left of this number without another one; at least 0."""
        return Range(max(0, self.low - other.high), max(0, self.high - other.low))


def exactly(number: int) -> Range:
    """A number that is known."""
    return Range(number, number)


class Reach(Enum):
    """Which data centres take part in a phase of one operation."""

    ALL = "all"
    ONE = "one"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Placement:
    """The data centre of each node, and by keyspace the copies of a row in each data centre.

    ``prepares`` is the reach of prepares: that of James's serial consistency.
    """

    centres: Mapping[str, str]
    copies: Mapping[str, Mapping[str, int]]
    prepares: Reach = Reach.ALL

    def operations(self, keyspace: str, counted: Mapping[str, int], reach: Reach) -> Range:
        """The number of operations behind what each node that answered has ``counted``.

        It is a range if rows may have different numbers of copies on these nodes, or if it is
        unknown which data centres take part. An operation without a copy there is not included.
        """
        parts = [part for part in self._parts(keyspace, counted) if part.counted]
        if reach is Reach.ALL:
            parts = [_Part(*map(sum, zip(*parts, strict=True)))] if parts else []
        found = [part.operations for part in parts]
        high = sum(each.high for each in found)
        lows = [each.low for each in found]
        low = max(lows, default=0) if reach is Reach.UNKNOWN else sum(lows)
        return Range(low, high)

    def _parts(self, keyspace: str, counted: Mapping[str, int]) -> list[_Part]:
        found = []
        for centre, copies in self.copies.get(keyspace, {ANYWHERE: 1}).items():
            nodes = [each for each, its in self.centres.items() if centre in {its, ANYWHERE}]
            told = [each for each in nodes if each in counted]
            most = min(copies, len(nodes))
            least = max(0, most - (len(nodes) - len(told)))
            found.append(_Part(sum(counted[each] for each in told), least, min(most, len(told))))
        return found


class _Part(NamedTuple):
    """What one data centre counted, and the least and most copies of a row on its nodes."""

    counted: int
    least: int
    most: int

    @property
    def operations(self) -> Range:
        return Range(round(self.counted / self.most), round(self.counted / max(1, self.least)))
