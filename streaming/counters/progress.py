"""Metrics of the counting thread, and a warning when it judges no counter for a long time."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.monitoring.metrics import JUDGED, Labels, Metrics

log = logging.getLogger("reconciler")

STANDSTILL = 1_800.0
"""Seconds without a judged observation, while counters wait, between two warnings."""


@dataclass(slots=True)
class CounterProgress:
    """Shows the outcomes of observations. ``clock`` is monotonic (s)."""

    metrics: Metrics
    clock: Callable[[], float] = time.monotonic
    _void: Counter[str] = field(default_factory=Counter)
    _judged_at: float | None = None

    def observed(self, tally: str, outcome: str, number: int) -> None:
        """Count the outcome of so many observations."""
        self.metrics.tally_looks.labels(tally, outcome).inc(number)
        if outcome in JUDGED:
            self._begin_anew()
        else:
            self._void[outcome] += number

    def lives(self) -> None:
        """Show that the thread runs, also while servers fail."""
        self.metrics.tally_turn.set_to_current_time()

    def turn(self, waiting: int) -> None:
        """Show that the thread has worked, and how many counters wait; warn at a standstill."""
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
        """Show the open findings of counters, by projection, kind and state."""
        self.metrics.show_open("tallies", counts)

    def _begin_anew(self) -> None:
        self._judged_at = self.clock()
        self._void.clear()
