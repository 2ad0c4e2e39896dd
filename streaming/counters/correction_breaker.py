"""The breaker of corrections: too many a minute, or too large a share of looks, opens it.

Counters go wrong one by one. If many seem wrong at once, the other side may be wrong: an event bus
that is far behind, or a lost listing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from reconcilers.limits.breakers import Breaker, SliceCount
from reconcilers.limits.ceiling import MINUTE
from reconcilers.words.errors import Deferred
from reconcilers.words.model import Micros
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.metrics import JUDGED

ASK_EVERY = 30.0
"""Seconds between two reads of whether a person closed it or another process opened it."""


class CountedBreakers(Protocol):
    """What counts writes and opens breakers: `streaming.pipeline.breakers.BreakerWatch`."""

    def recall(self) -> None:
        """Read from the journal which breakers are open."""

    def count(self, count: SliceCount) -> None:
        """Count what is about to be written."""

    def reason(self, breaker: Breaker) -> Waiting | None:
        """Why a breaker is open, None when it is closed."""

    def was_resumed(self) -> bool:
        """Whether somebody has closed a breaker since the last call."""


@dataclass(slots=True)
class CorrectionBreaker:
    """Admits corrections before they are sent. ``clock`` gives µs, ``steady`` seconds.

    At most ``a_minute`` corrections that come back (held before, or the rest of an error) are
    admitted. So corrections that a breaker or a pause held do not open the breaker when released.
    """

    breakers: CountedBreakers
    clock: Callable[[], Micros]
    steady: Callable[[], float]
    a_minute: int
    _looks: int = 0
    _again: list[Micros] = field(default_factory=list)
    _ask_at: float = float("-inf")

    def looked(self, outcome: str, number: int) -> None:
        """Count looks at counters if they were judged: the share is a share of these looks."""
        self._looks += number * (outcome in JUDGED)

    def why(self) -> Waiting | None:
        """Why nothing may be corrected now; None when the breaker is closed."""
        if self.steady() > self._ask_at:
            self.breakers.was_resumed()
            self._ask_at = self.steady() + ASK_EVERY
        return self.breakers.reason(Breaker.CORRECTIONS)

    def admit_new(self, name: str) -> None:
        """Admit a correction by its name. Raises `Deferred` if it must not be sent."""
        self._count(SliceCount(name, self.clock(), max(self._looks, 1), suspects=1, removals=0))

    def admit_again(self, name: str) -> None:
        """Admit one that comes back, which counts for no share. Raises `Deferred` likewise."""
        now = self.clock()
        self._again = [each for each in self._again if abs(now - each) < MINUTE]
        if len(self._again) >= self.a_minute:
            told = f"of corrections that come back, {self.a_minute} a minute are sent"
            raise Deferred(Waiting(Wait.CEILING, told))
        self._again.append(now)
        self._count(SliceCount(name, now, self._looks, suspects=0, removals=0, again=1))

    def _count(self, count: SliceCount) -> None:
        self._looks = 0
        self.breakers.count(count)
        why = self.breakers.reason(Breaker.CORRECTIONS)
        if why is not None:
            raise Deferred(why)
