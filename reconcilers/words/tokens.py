"""The ring of Murmur3 tokens in ranges, the unit in which whole tables are read. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

FIRST, LAST = -(2**63), 2**63 - 1
"""The lowest token is no row's: Cassandra keeps it for the ring's beginning."""


@dataclass(frozen=True, slots=True)
class TokenRange:
    """The tokens above ``after``, up to ``until``."""

    after: int = FIRST
    until: int = LAST

    def halves(self) -> tuple[TokenRange, ...]:
        """The same in two; itself where it is one token."""
        if self.until - self.after <= 1:
            return (self,)
        middle = (self.after + self.until) // 2
        return TokenRange(self.after, middle), TokenRange(middle, self.until)


def token_ranges(count: int) -> tuple[TokenRange, ...]:
    """The whole ring in so many ranges of the same length."""
    ends = [FIRST + (LAST - FIRST) * number // count for number in range(count + 1)]
    return tuple(TokenRange(*each) for each in pairwise(ends))


def range_of(token: int, count: int) -> int:
    """The number of the range, of so many, that a token is in."""
    return max(0, -(-(token - FIRST) * count // (LAST - FIRST)) - 1)
