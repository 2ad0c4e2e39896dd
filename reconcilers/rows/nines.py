"""The share of looks that found both sides equal, with what is not known about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10, sqrt

Z_95 = 1.959964
"""Standard deviations on either side of the mean that hold 95 % of a normal distribution."""
Z_999 = 3.290527
"""The same for 99.9 %."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a share, both from 0 to 1."""

    low: float
    high: float

    def __contains__(self, share: float) -> bool:
        return self.low <= share <= self.high


def wilson(good: int, total: int, z: float = Z_95) -> Bounds:
    """Wilson's score interval of a share, ``good`` of ``total``; everything is possible of none."""
    if total == 0:
        return Bounds(0.0, 1.0)
    share, spread = good / total, z * z / total
    middle = (share + spread / 2) / (1 + spread)
    half = z * sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    # At the ends it is exact; rounding would leave out the share itself.
    low = 0.0 if good == 0 else max(middle - half, 0.0)
    high = 1.0 if good == total else min(middle + half, 1.0)
    return Bounds(low, high)


@dataclass(frozen=True, slots=True)
class KnownShare:
    """The number of ``good`` and ``bad`` cases, and of ``missing`` ones: not looked at."""

    good: int = 0
    bad: int = 0
    missing: int = 0

    @property
    def looked_at(self) -> int:
        """The sample size: how many cases are known."""
        return self.good + self.bad

    @property
    def of_looked_at(self) -> float | None:
        """The share of good ones among those that were looked at; None if none was."""
        return self.good / self.looked_at if self.looked_at else None

    def interval(self, z: float = Z_95) -> Bounds:
        """Where the share of good ones is, whatever the missing ones were.

        The lower end takes all missing ones as bad, the upper end takes all of them as good.
        Without missing ones it is Wilson's interval.
        """
        total = self.looked_at + self.missing
        low = wilson(self.good, total, z).low
        return Bounds(low, wilson(self.good + self.missing, total, z).high)


def percent(share: float, total: int) -> str:
    """A share for people, with as many digits as ``total`` cases give; 100 % only if it is all.

    It is cut, not rounded: 99.996 % of 1,000 cases must not be shown as 100 %.
    """
    digits = max(0, len(str(max(total, 1))) - 2)
    unit = 10**digits
    return f"{floor(share * 100 * unit + 1e-9) / unit:.{digits}f} %"


def nines(share: float) -> float:
    """How many nines a share below 1 has: 3 for 0.999."""
    return -log10(1 - share)
