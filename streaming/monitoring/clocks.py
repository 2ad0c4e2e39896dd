"""Clock skew: promise 2 holds while clocks differ by less than half the delay."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Protocol

from reconcilers.errors import Retryable
from streaming.monitoring.metrics import Metrics

OWN_STEP = 1.0
"""So far (s) our own clock may have moved against a steady one since the nodes' were measured."""


def wall_over_steady() -> float:
    """How far our wall clock is ahead of a clock that nobody sets, s: the same until it steps."""
    return time.time() - time.monotonic()


class NodeClocks(Protocol):
    """The nodes of a cluster; `streaming.tables.Nodes` is the real one."""

    def members(self) -> Collection[str]:
        """The addresses of all nodes, also of those that do not answer."""

    def clocks(self) -> dict[str, float]:
        """How far the clock of each node that answers is ahead of ours, seconds.

        Raises `Retryable` when none answers.
        """


class ClockWatch:
    """Measures the nodes' clocks against ours; ``delay`` is D in seconds.

    ``own`` is how far our wall clock is ahead of a steady one: where it has moved, what was
    measured no longer holds.
    """

    def __init__(
        self,
        nodes: NodeClocks,
        delay: float,
        metrics: Metrics,
        own: Callable[[], float] = wall_over_steady,
    ) -> None:
        self._nodes = nodes
        self._most = delay / 2
        self._metrics = metrics
        self._trouble: str | None = None
        self._known: dict[str, float] = {}
        self._own = own
        self._own_then = own()

    def trouble(self) -> str | None:
        """Why repairs must pause, as last measured; None when the clocks are near enough."""
        moved = self._own() - self._own_then
        if abs(moved) > OWN_STEP:
            return f"our own clock has moved by {moved:.1f} s since the nodes' were measured"
        return self._trouble

    def measure(self) -> None:
        """Ask every node; as before if none answers.

        A node that does not answer keeps nobody from repairing, nor lifts a pause it was not
        heard to be well after.
        """
        own = self._own()
        try:
            ahead = self._nodes.clocks()
        except Retryable:
            return
        for node, seconds in ahead.items():
            self._metrics.clock_skew.labels(node).set(seconds)
        members = self._nodes.members()
        self._known = {node: at for node, at in self._known.items() if node in members} | ahead
        self._trouble = self._told_of_the_worst()  # at once: a batch may ask meanwhile
        self._own_then = own

    def _told_of_the_worst(self) -> str | None:
        worst = max(self._known, key=lambda node: abs(self._known[node]), default=None)
        if worst is None or abs(self._known[worst]) < self._most:
            return None
        return f"the clock of {worst} differs from ours by {self._known[worst]:.1f} s"
