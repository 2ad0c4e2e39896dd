"""The ring of Murmur3 tokens in ranges, the unit of reading whole tables. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

FIRST, LAST = -(2**63), 2**63 - 1
"""The ends of the ring. No row has the lowest token, which Cassandra reserves."""


@dataclass(frozen=True, slots=True)
class TokenRange:
    """The tokens above ``after``, up to and including ``until``."""

    after: int = FIRST
    until: int = LAST

    def halves(self) -> tuple[TokenRange, ...]:
        """The two halves of the range; the range itself if it is one token."""
        if self.until - self.after <= 1:
            return (self,)
        middle = (self.after + self.until) // 2
        return TokenRange(self.after, middle), TokenRange(middle, self.until)


def token_ranges(count: int) -> tuple[TokenRange, ...]:
    """The whole ring as ``count`` ranges of equal length."""
    ends = [FIRST + (LAST - FIRST) * number // count for number in range(count + 1)]
    return tuple(TokenRange(*each) for each in pairwise(ends))


def range_of(token: int, count: int) -> int:
    """The number of the range that contains a token, of ``count`` ranges from 0."""
    return max(0, -(-(token - FIRST) * count // (LAST - FIRST)) - 1)
