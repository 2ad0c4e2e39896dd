"""The ring of Murmur3 tokens in ranges, the unit of reading whole tables. Pure."""

from __future__ import annotations

from dataclasses import dataclass

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


def tokens_of(ranges: range, count: int) -> TokenRange:
    """The tokens of adjacent ranges, of ``count`` ranges of equal length from 0."""
    return TokenRange(_end(ranges.start, count), _end(ranges.stop, count))


def range_of(token: int, count: int) -> int:
    """The number of the range that contains a token, of ``count`` ranges from 0."""
    return max(0, -(-(token - FIRST) * count // (LAST - FIRST)) - 1)


def _end(number: int, count: int) -> int:
    return FIRST + (LAST - FIRST) * number // count
