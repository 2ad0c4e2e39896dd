"""Clock skew: promise 2 holds while clocks differ by less than half the delay.

Each process that judges or writes measures the nodes' clocks against **its own**: the driver, and
each worker, for on a cluster they run on other hosts, whose clocks the driver knows nothing of. A
clock that nobody sets is comparable within one process only, so none is handed over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from reconcilers.words.errors import Retryable
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.metrics import Metrics

OWN_STEP = 1.0
"""So far (s) our own clock may have moved against a steady one since the nodes' were measured."""


EVERY = 30.0
"""So long (s) what was measured is believed."""


class OwnTime(NamedTuple):
    """Our wall clock and, read with it, one that nobody sets, both in seconds."""

    wall: float
    steady: float

    @property
    def ahead(self) -> float:
        """How far the wall clock is ahead: the same until it steps."""
        return self.wall - self.steady


def own_time() -> OwnTime:
    """Of this process."""
    return OwnTime(time.time(), time.monotonic())


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

    ``metrics`` show them, where anybody reads those of this process. ``own`` is our own time: where
    its two clocks part, what was measured no longer holds.
    """

    def __init__(
        self,
        nodes: NodeClocks,
        delay: float,
        metrics: Metrics | None = None,
        own: Callable[[], OwnTime] = own_time,
    ) -> None:
        self._nodes = nodes
        self._most = delay / 2
        self._metrics = metrics
        self._trouble: Waiting | None = None
        self._known: dict[str, float] = {}
        self._own = own
        self._then = own()

    def trouble(self) -> Waiting | None:
        """Why repairs must pause, as last measured; None when the clocks are near enough."""
        return self.moved() or self._trouble

    def moved(self) -> Waiting | None:
        """How far our own clock has moved since the nodes' were measured; None where it stands."""
        moved = self._own().ahead - self._then.ahead
        if abs(moved) <= OWN_STEP:
            return None
        told = f"our own clock has moved by {moved:.1f} s since the nodes' were measured"
        return Waiting(Wait.CLOCKS, told)

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
        members = self._nodes.members()
        if self._metrics is not None:
            for node, seconds in ahead.items():
                self._metrics.clock_skew.labels(node).set(seconds)
            for gone in self._known.keys() - members - ahead.keys():
                self._metrics.clock_skew.remove(gone)
        self._known = {node: at for node, at in self._known.items() if node in members} | ahead
        self._trouble = self._told_of_the_worst()  # at once: a batch may ask meanwhile
        self._then = own

    def measure_if_due(self) -> None:
        """Ask every node where none was asked for `EVERY`, or our own clock has moved since."""
        if not self._known or self.moved() or self._own().steady - self._then.steady > EVERY:
            self.measure()

    def _told_of_the_worst(self) -> Waiting | None:
        worst = max(self._known, key=lambda node: abs(self._known[node]), default=None)
        if worst is None or abs(self._known[worst]) < self._most:
            return None
        told = f"the clock of {worst} differs from ours by {self._known[worst]:.1f} s"
        return Waiting(Wait.CLOCKS, told)
