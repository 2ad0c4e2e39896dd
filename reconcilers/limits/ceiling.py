"""The ceiling on repairs a minute: it holds what is above it, and opens nothing. Pure.

The breaker counts suspects at the time when their records were read, so that slices which wait for
one another are no burst. What they let through together may still be more than a cluster should be
written to at once. Above the ceiling a repair is held, and comes back by itself in a later minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from reconcilers.words.model import Micros

MINUTE: Micros = 60_000_000


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How many repairs may be written: ``now``, and in any minute from now on."""

    now: int
    a_minute: int

    def wait(self, before: int) -> Micros:
        """How long (µs) a repair waits that has so many before it; 0: it may be written now.

        Those above the ceiling are spread over the minutes that they need, so that each comes back
        once and not in every minute.
        """
        if before < self.now:
            return 0
        return MINUTE * (1 + (before - self.now) // self.a_minute)

    def shared(self, sizes: Sequence[int]) -> list[Ceiling]:
        """What each of several shares may write, in proportion to its size; together as much."""
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
    """How many may come back: so many a minute, and never more than a sixth of them at once.

    ``left`` are those of the time until ``at`` (µs of a steady clock), None: of no time yet.
    """

    a_minute: int
    left: float = 0.0
    at: Micros | None = None

    @property
    def whole(self) -> int:
        """How many may come back now."""
        return int(self.left)

    def at_time(self, now: Micros) -> Allowance:
        """The same at a later time; at the first it has as many as it ever has at once."""
        most = max(1.0, self.a_minute / 6)
        if self.at is None:
            return replace(self, left=most, at=now)
        left = self.left + self.a_minute * (now - self.at) / MINUTE
        return replace(self, left=min(most, left), at=now)

    def less(self, number: int) -> Allowance:
        """So many have come back."""
        return replace(self, left=self.left - number)


@dataclass(frozen=True, slots=True)
class Written:
    """How many repairs were written when (µs of a steady clock), in the last minute."""

    recent: tuple[tuple[Micros, int], ...] = ()

    def left(self, most: int, now: Micros) -> int:
        """How many more this minute may have."""
        written = sum(number for at, number in self.recent if now - at < MINUTE)
        return max(0, most - written)

    def reserved(self, number: int, now: Micros) -> Written:
        """A slice that may write so many begins: they count, also where nobody hears of its end."""
        recent = [each for each in self.recent if now - each[0] < MINUTE]
        return Written((*recent, (now, number)))

    def settled(self, number: int, now: Micros) -> Written:
        """It has ended, and has written so many."""
        return Written((*self.recent[:-1], (now, number)))
