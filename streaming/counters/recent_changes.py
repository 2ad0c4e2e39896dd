"""How many changes of each mailbox were released within L, in memory."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.counters.late import Past

SPANS = 60
"""Spans of time within L, by which changes are counted."""


@dataclass(slots=True)
class RecentChanges:
    """``lag`` is L (s): 0 if James writes every counter before its change is released.

    ``steady`` is a monotonic clock (s).
    """

    lag: float
    steady: Callable[[], float]
    _spans: deque[tuple[float, Counter[UUID]]] = field(default_factory=deque)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.steady()

    def take(self, changes: Mapping[UUID, int]) -> None:
        """Count changes that were released now."""
        if not changes or not self.lag:
            return
        now = self.steady()
        if not self._spans or self._spans[-1][0] + self.lag / SPANS < now:
            self._spans.append((now, Counter()))
        self._spans[-1][1].update(changes)
        self._forget(now)

    def past(self, mailboxes: Collection[UUID]) -> Past:
        """The changes of these mailboxes that were released within L, or up to a span longer."""
        now = self.steady()
        self._forget(now)
        found: Counter[UUID] = Counter()
        for _, changes in self._spans:
            found.update({one: changes[one] for one in mailboxes if one in changes})
        return Past(found, complete=now >= self._began + self.lag)

    def _forget(self, now: float) -> None:
        while self._spans and self._spans[0][0] + self.lag * (1 + 1 / SPANS) < now:
            self._spans.popleft()
