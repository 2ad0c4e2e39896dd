"""Whether the stream is behind: lineage may then lack events that are still to come. Pure.

It is behind if the frontier is too old, whatever the reason: a dead agent, a backlog in Kafka or
Spark, missing canaries. Kafka's lag does not show that. Repairs that rest on memory then wait.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reconcilers.capture.frontier import Node, Times
from reconcilers.words.model import SECOND, Micros
from reconcilers.words.waiting import Wait, Waiting

BEHIND = "the stream is behind"


@dataclass(frozen=True, slots=True)
class Heard:
    """What has been released and looked at when a slice is judged.

    ``until`` is the frontier: by node the time before which all its writes were released. ``nodes``
    are the nodes of the cluster. ``whole`` is False while the rest of a window is still to be
    looked at.
    """

    until: Times
    nodes: Collection[Node]
    whole: bool = True

    @property
    def frontier(self) -> Micros | None:
        """The time (µs) of the node that is farthest behind; None without nodes."""
        return min(self.of_each.values(), default=None)

    @property
    def of_each(self) -> Times:
        """The time (µs) by node; 0 for a node without canaries."""
        return {**dict.fromkeys(self.nodes, 0), **self.until}


def longest_age(delay: Micros, window: Micros, usual_capture: Micros) -> Micros:
    """How old (µs) the frontier may be: D + W + max(D + W, twice the usual capture time)."""
    settling = delay + window
    return settling + max(settling, 2 * usual_capture)


def why_behind(heard: Heard, now: Micros, longest: Micros, skew: Micros) -> Waiting | None:
    """Why the stream is behind; None if the frontier is no older than ``longest`` (µs).

    It is also behind while a part of the window is missing, or if the frontier is ``skew`` (µs) or
    more ahead of our clock: a node dates its canaries, and with such a clock they do not show any
    age.
    """
    why = _why(heard, now, longest, skew)
    return None if why is None else Waiting(Wait.BEHIND, f"{BEHIND}: {why}")


def _why(heard: Heard, now: Micros, longest: Micros, skew: Micros) -> str | None:
    frontier = heard.of_each
    if not frontier:
        return "no canary has come out yet"
    node = min(sorted(frontier), key=lambda each: frontier[each])
    if frontier[node] <= 0:
        return f"no canary of node {node} has come out yet"
    age = now - frontier[node]
    if age > longest:
        seconds = age // SECOND
        return f"node {node} wrote {seconds} s ago what is not looked at yet"
    newest = max(sorted(frontier), key=lambda each: frontier[each])
    ahead = frontier[newest] - now
    if ahead >= skew:
        return f"canaries of node {newest} are {ahead // SECOND} s ahead of our clock"
    if not heard.whole:
        return "the rest of the window is still to be looked at"
    return None
