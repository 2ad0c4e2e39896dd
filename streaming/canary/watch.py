"""What the echoes of canaries show: the frontier for counters, each node's delay, and losses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from checkpoints.clock import to_seconds
from reconcilers.capture.chain import Reached
from reconcilers.capture.frontier import Echo, Frontier, Lane, Node, Proven, Span, Times
from reconcilers.words.model import Micros
from streaming.monitoring.metrics import Metrics

log = logging.getLogger("reconciler")

MOST_NAMED = 3
"""Lanes in the sentence of one loss."""


@dataclass(slots=True)
class NodesSeen:
    """Since when each node is known, and since when it is not there any more (µs)."""

    since: dict[Node, Micros] = field(default_factory=dict)
    absent: dict[Node, Micros] = field(default_factory=dict)

    def see(self, nodes: Iterable[Node], now: Micros) -> None:
        """These are there; 0 where it is not known when."""
        for node in nodes:
            self.absent.pop(node, None)
            if now:
                self.since.setdefault(node, now)

    def absent_for(self, node: Node, now: Micros) -> Micros:
        """How long this one has not been there."""
        return now - self.absent.setdefault(node, now)

    def forget(self, node: Node) -> None:
        """It has left."""
        self.since.pop(node, None)
        self.absent.pop(node, None)


@dataclass(slots=True)
class FrontierWatch:
    """Hears the canaries of each slice. ``topic`` is the agent's, ``nodes`` gives those that exist.

    ``events_lost`` is told from when on events are known again (µs) where some may be lost, and
    which; what it cannot be told is kept until it can.
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
        """Go on after what was heard before the start."""
        self.frontier.begin(reached)

    def begin_anew(self, places: Collection[tuple[str, int]]) -> None:
        """Of these partitions records are lost, canaries among them: none is missed that is gone.

        What was lost with them is known, and memory begins after it.
        """
        lanes = self.frontier.chains
        self.frontier.keep({(topic, number) for _, topic, number in lanes} - set(places))

    def hear(
        self, echoes: Iterable[Echo], places: Iterable[tuple[str, int]], looked_at: Micros
    ) -> Proven:
        """A slice's echoes, in the order of their offsets; what is proven in all partitions then.

        ``places`` are the partitions that are read. All that was read before ``looked_at`` (µs) has
        been looked at; 0 where that is not known yet. Raises what ``events_lost`` raises.
        """
        self._now = max(self._now, looked_at)
        places = list(places)
        self.frontier.keep(self._ours(places))
        for span in self.frontier.hear(echoes, self._now):
            log.error("events may be lost: %s; what memory says of before counts no more", span)
            self.metrics.lost_spans.labels(span.lane[0]).inc()
            self._untold.append(span)
        if self._untold:
            self.events_lost(max(span.until for span in self._untold), _named(self._untold))
            self._untold.clear()
        self._forget_gone()
        self._show()
        return self.proven(places)

    def proven(self, places: Iterable[tuple[str, int]]) -> Proven:
        """What was proven, when a slice was heard last, in all of these partitions."""
        return self.frontier.proven(self._ours(places))

    def until_with(self, echoes: Sequence[Echo], places: Iterable[tuple[str, int]]) -> Times:
        """Before when (µs) all of each node has come out, if these echoes came, too.

        They are in the order of their offsets, and not heard by it.
        """
        now = self.frontier
        tried = replace(now, chains=dict(now.chains), astray=dict(now.astray))
        tried.hear(echoes, self._now)
        return tried.until(self._ours(places))

    def _ours(self, places: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
        return {place for place in places if place[0] == self.topic}

    def reached(self) -> dict[Lane, Reached]:
        """How far each lane was heard without a gap: kept with what is settled."""
        return self.frontier.reached()

    def _forget_gone(self) -> None:
        """A node that has left says nothing any more, and nobody waits for it."""
        nodes = self.nodes()
        self._seen.see(nodes, self._now)
        for node in nodes:
            self.metrics.lost_spans.labels(node)  # so that the first loss is an increase
        patience = self.frontier.rules.lost_after  # the driver may lack a node for a moment
        for node in (self.frontier.nodes() | self._seen.since.keys()) - set(nodes):
            if self._seen.absent_for(node, self._now) > patience:
                log.info("node %s is gone: its canaries are not waited for", node)
                self.frontier.forget(node)
                self._seen.forget(node)
                with suppress(KeyError):
                    self.metrics.capture_delay.remove(node)

    def _show(self) -> None:
        """The newest canary's age is how long capture takes; of a silent agent it grows.

        Of a node that was never heard it is how long that node has been known, after a while.
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
