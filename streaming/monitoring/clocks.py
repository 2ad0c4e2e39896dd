"""Clock skew: promise 2 holds while clocks differ by less than half the delay.

Each process that judges or writes compares the nodes' clocks with **its own**: the driver, and each
worker, which on a cluster may run on another host. A monotonic clock is comparable within one
process only, so none is handed over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from reconcilers.words.errors import Retryable
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.metrics import Metrics

OWN_STEP = 1.0
"""How far (s) our clock may move against the monotonic one since the nodes' were measured."""


EVERY = 30.0
"""How long (s) a measurement is believed."""


class OwnTime(NamedTuple):
    """Our wall clock and, read at the same time, the monotonic clock, both in seconds."""

    wall: float
    steady: float

    @property
    def ahead(self) -> float:
        """The difference of the two clocks (s), which is constant until the wall clock steps."""
        return self.wall - self.steady


def own_time() -> OwnTime:
    """The clocks of this process."""
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
    """Compares the nodes' clocks with ours; ``delay`` is D in seconds.

    ``metrics`` show them, if this process serves metrics. ``own`` reads our clocks: if they part,
    the measurement no longer holds.
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
        """Why repairs must pause, as last measured; None if the clocks are near enough."""
        return self.moved() or self._trouble

    def moved(self) -> Waiting | None:
        """How far our clock has moved since the nodes' were measured; None if it has not."""
        moved = self._own().ahead - self._then.ahead
        if abs(moved) <= OWN_STEP:
            return None
        told = f"our own clock has moved by {moved:.1f} s since the nodes' were measured"
        return Waiting(Wait.CLOCKS, told)

    def measure(self) -> None:
        """Ask every node. If none answers, the last measurement stays.

        A node that does not answer starts no pause, and does not end the pause that it caused.
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
        self._trouble = self._told_of_the_worst()  # set once: a batch may read it meanwhile
        self._then = own

    def measure_if_due(self) -> None:
        """Measure if the last measurement is older than `EVERY`, or our clock has moved since."""
        if not self._known or self.moved() or self._own().steady - self._then.steady > EVERY:
            self.measure()

    def _told_of_the_worst(self) -> Waiting | None:
        worst = max(self._known, key=lambda node: abs(self._known[node]), default=None)
        if worst is None or abs(self._known[worst]) < self._most:
            return None
        told = f"the clock of {worst} differs from ours by {self._known[worst]:.1f} s"
        return Waiting(Wait.CLOCKS, told)
