"""Whether replicas agree: no counter is judged while a node is down or hints are pending."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from reconcilers.words.waiting import Wait, Waiting


class NodeStates(Protocol):
    """The nodes of a cluster; `streaming.tables.Nodes` is the real one."""

    def away(self) -> list[str]:
        """The nodes that are known to be down."""

    def with_hints(self) -> list[str]:
        """The nodes that hold hints for others."""


@dataclass(slots=True)
class NodesWatch:
    """Watches for outages; replicas may differ for ``pause`` (seconds) after one."""

    nodes: NodeStates
    pause: float
    clock: Callable[[], float] = time.monotonic
    _well_since: float | None = None

    def trouble(self) -> Waiting | None:
        """Why no correction may be made now, None if one may."""
        why = self._why()
        return None if why is None else Waiting(Wait.NODE_AWAY, why)

    def _why(self) -> str | None:
        away = self.nodes.away()
        if away:
            self._well_since = self.clock() + self.pause
            return f"node {', '.join(away)} is down"
        hints = self.nodes.with_hints()
        if hints:
            self._well_since = self.clock() + self.pause
            return f"hints are pending on node {', '.join(hints)}"
        if self._well_since is not None and self.clock() < self._well_since:
            return f"a node was down, or had hints, less than {self.pause:.0f} s ago"
        return None
