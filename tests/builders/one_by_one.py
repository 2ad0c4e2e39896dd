"""The frontier's rule in its simplest form: each echo by itself, all that waits sorted anew.

The numbers of canaries are their times here.

Its cost grows with the square of what waits. `reconcilers.capture.frontier` must decide as it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from reconcilers.capture.frontier import MISSING, UNWATCHED, Canary, Echo, FrontierRules, Lane, Span
from reconcilers.words.model import Micros


@dataclass
class PlainChain:
    """One lane. ``ahead`` came while an earlier one is missing, since ``missing_since``."""

    reached: Micros
    proven: Micros = 0
    ahead: list[Canary] = field(default_factory=list)
    missing_since: Micros | None = None

    def hear(self, canary: Canary, now: Micros) -> bool:
        """Take in one more; returns whether it is new."""
        if canary.number <= self.reached or canary in self.ahead:
            return False
        self.ahead.append(canary)
        self._join(now)
        return True

    def give_up(self, now: Micros) -> None:
        """Go on after what is missing first."""
        self.reached, self.missing_since = self.ahead[0].previous, None
        self._join(now)

    def _join(self, now: Micros) -> None:
        before = self.reached
        self.ahead.sort(key=lambda each: each.number)
        while self.ahead and self.ahead[0].previous <= self.reached:
            canary = self.ahead.pop(0)
            self.reached = canary.number
            if canary.steady:
                self.proven = max(self.proven, canary.previous)
        waits = self.missing_since is not None and self.reached == before
        since = self.missing_since if waits else now
        self.missing_since = since if self.ahead else None


@dataclass
class PlainFrontier:
    """All lanes."""

    rules: FrontierRules
    chains: dict[Lane, PlainChain] = field(default_factory=dict)

    def hear(self, echoes: Iterable[Echo], now: Micros) -> list[Span]:
        """Take in echoes in the order of their offsets; returns what may be lost."""
        return [*self._heard(echoes, now), *self._overdue(now)]

    def _heard(self, echoes: Iterable[Echo], now: Micros) -> Iterator[Span]:
        for echo in echoes:
            canary = echo.canary
            chain = self.chains.setdefault(echo.lane, PlainChain(canary.previous))
            since = canary.number - canary.idle if canary.idle else chain.reached
            is_new = chain.hear(canary, now)
            if is_new and since and canary.number - since > self.rules.longest_pause:
                yield Span(echo.lane, since, canary.number, UNWATCHED)

    def _overdue(self, now: Micros) -> Iterator[Span]:
        for lane, chain in self.chains.items():
            since = chain.missing_since
            if since is not None and now - since > self.rules.lost_after:
                yield Span(lane, chain.reached, chain.ahead[0].number, MISSING)
                chain.give_up(now)
