"""Whether counters are kept: what operators see of the counting thread, and when it says a word."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from reconcilers.declared.tally import Tally
from streaming.monitoring.metrics import Labels, Metrics

log = logging.getLogger("reconciler")

JUDGED = frozenset({"agrees", "unsure", "wrong"})
"""Outcomes of an observation that counted; of all others nothing was learned."""
STANDSTILL = 1_800.0
"""Without one that counted for so long (s), while counters wait, it is said; and again after it."""


@dataclass(slots=True)
class CounterProgress:
    """Shows what becomes of observations. ``clock`` is a steady one, seconds."""

    metrics: Metrics
    clock: Callable[[], float] = time.monotonic
    _void: Counter[str] = field(default_factory=Counter)
    _judged_at: float | None = None

    def observed(self, tally: Tally, outcome: str) -> None:
        """What became of an observation of a counter."""
        self.metrics.tally_looks.labels(tally.name, outcome).inc()
        if outcome in JUDGED:
            self._begin_anew()
        else:
            self._void[outcome] += 1

    def lives(self) -> None:
        """The thread does what it can, whatever servers answer."""
        self.metrics.tally_turn.set_to_current_time()

    def turn(self, waiting: int) -> None:
        """The thread has worked, and so many counters are due to be looked at."""
        self.metrics.tally_waiting.set(waiting)
        self.lives()
        if self._judged_at is None or not waiting:
            self._begin_anew()
            return
        stood = self.clock() - self._judged_at
        if stood >= STANDSTILL:
            why = ", ".join(f"{number} {each}" for each, number in self._void.most_common())
            log.warning(
                "no counter was judged for %d minutes, %d wait; observations: %s",
                round(stood / 60),
                waiting,
                why or "none ended",
            )
            self._begin_anew()

    def open(self, counts: Counter[Labels]) -> None:
        """The open findings of counters, by projection, kind and state."""
        self.metrics.show_open("tallies", counts)

    def _begin_anew(self) -> None:
        self._judged_at = self.clock()
        self._void.clear()
