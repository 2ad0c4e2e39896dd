"""Whether the stream is behind: then what memory does not hold may only not have come yet. Pure.

It is behind by the age of the frontier, whatever the reason: an agent is dead, Kafka or Spark have
a backlog, nobody writes canaries. Kafka's lag says nothing of it. What rests on memory waits then.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reconcilers.capture.frontier import Node, Times
from reconcilers.words.model import SECOND, Micros
from reconcilers.words.waiting import Wait, Waiting

BEHIND = "the stream is behind"
"""Each reason begins so."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What has come out and was looked at when a slice is judged.

    ``until`` is the frontier: before when all that each node wrote has come out. ``nodes`` are
    those that there are. ``whole``: records that were read together are looked at together; False
    where the rest of their window is still to come.
    """

    until: Times
    nodes: Collection[Node]
    whole: bool = True

    @property
    def frontier(self) -> Micros | None:
        """Of the node that is farthest behind (µs); None where there is none."""
        return min(self.of_each.values(), default=None)

    @property
    def of_each(self) -> Times:
        """By node; 0 of one of which no canary has come out."""
        return {**dict.fromkeys(self.nodes, 0), **self.until}


def longest_age(delay: Micros, window: Micros, usual_capture: Micros) -> Micros:
    """How old (µs) the frontier may be: twice what is waited for anyway.

    Where capture takes long as a rule, it may take twice as long as usual.
    """
    settling = delay + window
    return settling + max(settling, 2 * usual_capture)


def why_behind(heard: Heard, now: Micros, longest: Micros, skew: Micros) -> Waiting | None:
    """Why the stream is behind, None when it is not: the frontier is no older than ``longest``.

    Nor is it ahead of our clock by ``skew`` or more: a node dates its canaries, and if its clock is
    so wrong, they do not show how old anything is.
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
