"""How many changes of each mailbox have come out within L, kept in memory."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.counters.late import Past

SPANS = 60
"""They are kept by spans of time: so many within L."""


@dataclass(slots=True)
class RecentChanges:
    """``lag`` is L (s): 0 where every counter is written before its change comes out.

    ``steady`` is a clock that only goes up (s).
    """

    lag: float
    steady: Callable[[], float]
    _spans: deque[tuple[float, Counter[UUID]]] = field(default_factory=deque)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.steady()

    def take(self, changes: Mapping[UUID, int]) -> None:
        """These have come out now."""
        if not changes or not self.lag:
            return
        now = self.steady()
        if not self._spans or self._spans[-1][0] + self.lag / SPANS < now:
            self._spans.append((now, Counter()))
        self._spans[-1][1].update(changes)
        self._forget(now)

    def past(self, mailboxes: Collection[UUID]) -> Past:
        """What of these mailboxes has come out within L, or a span longer."""
        now = self.steady()
        self._forget(now)
        found: Counter[UUID] = Counter()
        for _, changes in self._spans:
            found.update({one: changes[one] for one in mailboxes if one in changes})
        return Past(found, complete=now >= self._began + self.lag)

    def _forget(self, now: float) -> None:
        while self._spans and self._spans[0][0] + self.lag * (1 + 1 / SPANS) < now:
            self._spans.popleft()
