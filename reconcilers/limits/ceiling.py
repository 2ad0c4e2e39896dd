"""The ceiling on repairs a minute: it holds repairs above it and opens no breaker. Pure.

The breaker counts suspects at the time when their records were read, so slices that wait for one
another are no burst. Together they may still be too many writes for a cluster. A repair above the
ceiling is held, and comes back automatically in a later minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from reconcilers.words.model import Micros

MINUTE: Micros = 60_000_000


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The number of repairs that may be written: ``now``, and in any later minute."""

    now: int
    a_minute: int

    def wait(self, before: int) -> Micros:
        """How long (µs) a repair waits behind ``before`` others; 0: it may be written now."""
        if before < self.now:
            return 0
        return MINUTE * (1 + (before - self.now) // self.a_minute)

    def shared(self, sizes: Sequence[int]) -> list[Ceiling]:
        """The ceilings of several shares, in proportion to their sizes; together as much."""
        return [
            Ceiling(now, max(1, a_minute))
            for now, a_minute in zip(
                _in_proportion(self.now, sizes), _in_proportion(self.a_minute, sizes), strict=True
            )
        ]


def _in_proportion(number: int, sizes: Sequence[int]) -> list[int]:
    total = max(1, sum(sizes))
    up_to = [number * size // total for size in accumulate(sizes, initial=0)]
    return [end - begin for begin, end in pairwise(up_to)]


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many keys may come back a minute, a sixth at once; ``left`` at ``at`` (µs, monotonic)."""

    a_minute: int
    left: float = 0.0
    at: Micros | None = None

    @property
    def whole(self) -> int:
        """How many may come back now."""
        return int(self.left)

    def at_time(self, now: Micros) -> Allowance:
        """The allowance at a later time (µs). At first it has as many as it may have at once."""
        most = max(1.0, self.a_minute / 6)
        if self.at is None:
            return replace(self, left=most, at=now)
        left = self.left + self.a_minute * (now - self.at) / MINUTE
        return replace(self, left=min(most, left), at=now)

    def less(self, number: int) -> Allowance:
        """The allowance after ``number`` keys have come back."""
        return replace(self, left=self.left - number)


@dataclass(frozen=True, slots=True)
class Written:
    """How many repairs were written at which time (µs, monotonic clock) in the last minute."""

    recent: tuple[tuple[Micros, int], ...] = ()

    def left(self, most: int, now: Micros) -> int:
        """How many more this minute may have."""
        written = sum(number for at, number in self.recent if now - at < MINUTE)
        return max(0, most - written)

    def reserved(self, number: int, now: Micros) -> Written:
        """With a slice that may write ``number`` repairs, counted even without a reported end."""
        recent = [each for each in self.recent if now - each[0] < MINUTE]
        return Written((*recent, (now, number)))

    def settled(self, number: int, now: Micros) -> Written:
        """With the last slice ended after ``number`` repairs."""
        return Written((*self.recent[:-1], (now, number)))
