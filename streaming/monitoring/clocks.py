"""Clock skew: promise 2 holds while clocks differ by less than half the delay."""

from __future__ import annotations

from typing import Any

from reconcilers.errors import Retryable
from streaming.monitoring.metrics import Metrics
from streaming.tables import node_clocks


class ClockWatch:
    """Measures the nodes' clocks against ours; ``delay`` is D in seconds."""

    def __init__(self, session: Any, delay: float, metrics: Metrics) -> None:
        self._session = session
        self._most = delay / 2
        self._metrics = metrics
        self._trouble: str | None = None
        self._known: dict[str, float] = {}

    def trouble(self) -> str | None:
        """Why repairs must pause, None when the clocks are near enough; as before if none answers.

        A node that does not answer keeps nobody from repairing, nor lifts a pause it was not
        heard to be well after.
        """
        try:
            ahead = node_clocks(self._session)
        except Retryable:
            return self._trouble
        for node, seconds in ahead.items():
            self._metrics.clock_skew.labels(node).set(seconds)
        members = {host.address for host in self._session.cluster.metadata.all_hosts()}
        self._known = {node: at for node, at in self._known.items() if node in members} | ahead
        worst = max(self._known, key=lambda node: abs(self._known[node]), default=None)
        self._trouble = None
        if worst is not None and abs(self._known[worst]) >= self._most:
            ours = f"differs from ours by {self._known[worst]:.1f} s"
            self._trouble = f"the clock of {worst} {ours}"
        return self._trouble
