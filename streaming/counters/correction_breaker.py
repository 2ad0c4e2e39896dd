"""The breaker of corrections: many a minute, or of many counters that were looked at, open it.

Counters go wrong one by one. Where many seem wrong at once, what is wrong may be the other side: an
event bus that is far behind, a listing that was lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from reconcilers.limits.breakers import Breaker, Count
from reconcilers.limits.ceiling import MINUTE
from reconcilers.words.errors import Deferred
from reconcilers.words.model import Micros
from reconcilers.words.waiting import Wait, Waiting
from streaming.counters.progress import JUDGED

ASK_EVERY = 30.0
"""Seconds: whether a person has closed it, or another process opened it."""


class CountedBreakers(Protocol):
    """Counts, opens and remembers; `streaming.pipeline.breakers.BreakerWatch` is the real one."""

    def recall(self) -> None:
        """Read which are open."""

    def count(self, count: Count) -> None:
        """Something is about to be written."""

    def reason(self, breaker: Breaker) -> Waiting | None:
        """Why it is open, None when it is closed."""

    def was_resumed(self) -> bool:
        """Whether somebody has closed it since the last call."""


@dataclass(slots=True)
class CorrectionBreaker:
    """Corrections as they are about to be sent. ``clock`` gives µs, ``steady`` seconds.

    Of those that come back (held before, or the rest of an error) at most ``a_minute`` are let
    through, so that what a breaker or a pause has held does not open it when it is let go.
    """

    breakers: CountedBreakers
    clock: Callable[[], Micros]
    steady: Callable[[], float]
    a_minute: int
    _looks: int = 0
    _again: list[Micros] = field(default_factory=list)
    _ask_at: float = float("-inf")

    def looked(self, outcome: str) -> None:
        """A counter was looked at; such looks are what the share is of."""
        self._looks += outcome in JUDGED

    def why(self) -> Waiting | None:
        """Why nothing may be corrected now; None when it is closed."""
        if self.steady() > self._ask_at:
            self.breakers.was_resumed()
            self._ask_at = self.steady() + ASK_EVERY
        return self.breakers.reason(Breaker.CORRECTIONS)

    def admit_new(self, name: str) -> None:
        """The correction of this name is about to be sent. Raises `Deferred` where it is not to."""
        self._count(Count(name, self.clock(), max(self._looks, 1), suspects=1, removals=0))

    def admit_again(self, name: str) -> None:
        """The same, of a counter that had a finding before: it counts for no share."""
        now = self.clock()
        self._again = [each for each in self._again if abs(now - each) < MINUTE]
        if len(self._again) >= self.a_minute:
            told = f"of corrections that come back, {self.a_minute} a minute are sent"
            raise Deferred(Waiting(Wait.CEILING, told))
        self._again.append(now)
        self._count(Count(name, now, self._looks, suspects=0, removals=0, again=1))

    def _count(self, count: Count) -> None:
        self._looks = 0
        self.breakers.count(count)
        why = self.breakers.reason(Breaker.CORRECTIONS)
        if why is not None:
            raise Deferred(why)
