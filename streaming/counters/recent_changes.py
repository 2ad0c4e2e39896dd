"""How many changes of each mailbox were released within L, in memory."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from uuid import UUID

from streaming.counters.mailbox_changes import NumberedChanges

SPANS = 60
"""Spans of time within L, by which changes are counted."""


@dataclass(slots=True)
class RecentChanges:
    """``lag`` is L (s): 0 if James writes every counter before its change is released.

    ``steady`` is a monotonic clock (s).
    """

    lag: float
    steady: Callable[[], float]
    _spans: deque[tuple[float, NumberedChanges]] = field(default_factory=deque)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.steady()

    def take(self, came: NumberedChanges) -> None:
        """Count changes that were released now."""
        if not len(came.numbers) or not self.lag:
            return
        now = self.steady()
        if not self._spans or self._spans[-1][0] + self.lag / SPANS < now:
            self._spans.append((now, came))
        else:
            since, before = self._spans[-1]
            self._spans[-1] = since, before.and_of(came)
        self._forget(now)

    def unknown_for(self) -> float:
        """How long (s) it is until all changes within L are known; 0 if they are."""
        return max(0.0, self._began + self.lag - self.steady())

    def past(self, mailboxes: Collection[UUID]) -> Counter[UUID]:
        """The changes of these mailboxes that were released within L, or up to a span longer."""
        self._forget(self.steady())
        found: Counter[UUID] = Counter()
        for _, changes in self._spans:
            found.update(changes.among(mailboxes))
        return found

    def _forget(self, now: float) -> None:
        while self._spans and self._spans[0][0] + self.lag * (1 + 1 / SPANS) < now:
            self._spans.popleft()
