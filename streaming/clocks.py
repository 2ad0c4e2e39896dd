"""Clock skew: promise 2 holds while clocks differ by less than half the delay."""

from __future__ import annotations

from typing import Any

from reconcilers.errors import Retryable
from streaming.metrics import Metrics
from streaming.tables import node_clocks


class ClockWatch:
    """Measures the nodes' clocks against ours; ``delay`` is D in seconds."""

    def __init__(self, session: Any, delay: float, metrics: Metrics) -> None:
        self._session = session
        self._most = delay / 2
        self._metrics = metrics

    def trouble(self) -> str | None:
        """Why repairs must pause, None when the clocks are near enough or nobody answers."""
        try:
            ahead = node_clocks(self._session)
        except Retryable:
            return None  # the batch fails for the same reason, and says so
        for node, seconds in ahead.items():
            self._metrics.clock_skew.labels(node).set(seconds)
        worst = max(ahead, key=lambda node: abs(ahead[node]), default=None)
        if worst is None or abs(ahead[worst]) < self._most:
            return None
        return f"the clock of {worst} differs from ours by {ahead[worst]:.1f} s"
