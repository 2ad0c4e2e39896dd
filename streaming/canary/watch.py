"""What the echoes of canaries show: the frontier for counters, each node's delay, and losses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from checkpoints.clock import to_seconds
from reconcilers.capture.chain import Reached
from reconcilers.capture.frontier import (
    Echo,
    Echoes,
    Frontier,
    Lane,
    Node,
    Proven,
    Span,
    Times,
)
from reconcilers.capture.lane_echoes import folded
from reconcilers.words.model import Micros
from streaming.monitoring.metrics import Metrics

log = logging.getLogger("reconciler")

MOST_NAMED = 3
"""Most lanes that the sentence of a loss names."""


@dataclass(slots=True)
class NodesSeen:
    """Since when (µs) each node is known, and since when it is absent."""

    since: dict[Node, Micros] = field(default_factory=dict)
    absent: dict[Node, Micros] = field(default_factory=dict)

    def see(self, nodes: Iterable[Node], now: Micros) -> None:
        """Take in the nodes that are there; ``now`` is 0 if the time is unknown."""
        for node in nodes:
            self.absent.pop(node, None)
            if now:
                self.since.setdefault(node, now)

    def absent_for(self, node: Node, now: Micros) -> Micros:
        """How long (µs) this node has been absent; 0 at the first call."""
        return now - self.absent.setdefault(node, now)

    def forget(self, node: Node) -> None:
        """Forget a node that has left."""
        self.since.pop(node, None)
        self.absent.pop(node, None)


@dataclass(slots=True)
class FrontierWatch:
    """Receives the canaries of each slice. ``topic`` is the agent's, ``nodes`` returns all nodes.

    ``events_lost`` is called if events may be lost, with the time (µs) after which all are known
    again, and with the lanes. If it raises, the loss is reported again later.
    """

    frontier: Frontier
    topic: str
    nodes: Callable[[], Collection[Node]]
    events_lost: Callable[[Micros, str], None]
    metrics: Metrics
    _now: Micros = 0
    _untold: list[Span] = field(default_factory=list)
    _seen: NodesSeen = field(default_factory=NodesSeen)

    def begin(self, reached: Mapping[Lane, Reached]) -> None:
        """Continue after the canaries that were received before the start."""
        self.frontier.begin(reached)

    def begin_anew(self, places: Collection[tuple[str, int]]) -> None:
        """Records of these partitions are lost, canaries among them; do not wait for those.

        The loss is already known, and memory begins after it.
        """
        lanes = self.frontier.chains
        self.frontier.keep({(topic, number) for _, topic, number in lanes} - set(places))

    def folded(self, echoes: Iterable[tuple[int, Echo]]) -> list[Echoes]:
        """All echoes of a slice with their offsets, as `hear` takes them."""
        return folded(echoes, self.frontier.rules.longest_pause)

    def hear(
        self, echoes: Iterable[Echoes], places: Iterable[tuple[str, int]], looked_at: Micros
    ) -> Proven:
        """Take in a slice's echoes, folded; return what all partitions prove now.

        ``places`` are the partitions that are read. All that was read before ``looked_at`` (µs) has
        been looked at; 0 if that is not known yet. Raises what ``events_lost`` raises.
        """
        self._now = max(self._now, looked_at)
        places = list(places)
        self.frontier.keep(self._ours(places))
        for span in self.frontier.hear(echoes, self._now):
            log.error("events may be lost: %s; lineage from before is not used any more", span)
            self._untold.append(span)
        if self._untold:
            self.events_lost(max(span.until for span in self._untold), _named(self._untold))
            self._untold.clear()
        self._forget_gone()
        self._show()
        return self.proven(places)

    def proven(self, places: Iterable[tuple[str, int]]) -> Proven:
        """What all of these partitions proved when the last slice was taken in."""
        return self.frontier.proven(self._ours(places))

    def until_with(self, echoes: Iterable[Echoes], places: Iterable[tuple[str, int]]) -> Times:
        """Up to when (µs) each node would be looked at if these echoes were taken in, too.

        The watch itself does not change.
        """
        now = self.frontier
        tried = replace(now, chains=dict(now.chains), astray=dict(now.astray))
        tried.hear(echoes, self._now)
        return tried.until(self._ours(places))

    def _ours(self, places: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
        return {place for place in places if place[0] == self.topic}

    def reached(self) -> dict[Lane, Reached]:
        """How far each lane was received without a gap; stored with settled offsets."""
        return self.frontier.reached()

    def _forget_gone(self) -> None:
        """Forget nodes that have left: nothing waits for their canaries."""
        nodes = self.nodes()
        self._seen.see(nodes, self._now)
        patience = self.frontier.rules.lost_after  # the driver may lack a node for a moment
        for node in (self.frontier.nodes() | self._seen.since.keys()) - set(nodes):
            if self._seen.absent_for(node, self._now) > patience:
                log.info("node %s is gone: its canaries are not waited for", node)
                self.frontier.forget(node)
                self._seen.forget(node)
                with suppress(KeyError):
                    self.metrics.capture_delay.remove(node)

    def _show(self) -> None:
        """Show the newest canary's age as the delay of capture; it grows while an agent is silent.

        For a node without any canary, after a while, show how long the node has been known.
        """
        if not self._now:
            return
        patience, newest = self.frontier.rules.lost_after, self.frontier.newest()
        silent = {node: at for node, at in self._seen.since.items() if self._now - at > patience}
        for node, at in {**silent, **newest}.items():
            self.metrics.capture_delay.labels(node).set(max(to_seconds(self._now - at), 0.0))
        if newest:
            self.metrics.frontier.set(to_seconds(min(newest.values())))


def _named(spans: Sequence[Span]) -> str:
    more = f"; and {len(spans) - MOST_NAMED} more" if len(spans) > MOST_NAMED else ""
    return f"events may be lost: {'; '.join(map(str, spans[:MOST_NAMED]))}{more}"
