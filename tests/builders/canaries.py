"""Canaries and their echoes, by hand."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from reconcilers.capture.chain import Mark, Reached
from reconcilers.capture.frontier import (
    Canary,
    Echo,
    Echoes,
    Frontier,
    FrontierRules,
    Marks,
    Node,
)
from reconcilers.capture.lane_echoes import folded
from reconcilers.words.model import Micros
from streaming.canary.watch import FrontierWatch
from streaming.monitoring.metrics import Metrics
from tests.builders.rows import SECOND

TOPIC = "james"
RULES = FrontierRules(lost_after=60 * SECOND, longest_pause=600 * SECOND)


def frontier_watch(
    metrics: Metrics | None = None,
    events_lost: Callable[[Micros, str], None] = lambda at, why: None,
    nodes: Callable[[], Collection[Node]] = lambda: ("n1", "n2"),
) -> FrontierWatch:
    """Of the agent's topic `TOPIC`."""
    shown = metrics or Metrics(CollectorRegistry())
    return FrontierWatch(Frontier(RULES), TOPIC, nodes, events_lost, shown)


@dataclass
class CapturedAs:
    """What Cassandra says of capture: each answer may be set; ``marks`` are those of one node."""

    tables: str | None
    newest: Micros | None = None
    ring: str = "ring"

    def captured(self) -> str | None:
        return self.tables

    def watched(self) -> str | None:
        return None if self.tables is None else f"{self.ring}/{self.tables}"

    def marks(self) -> Marks | None:
        watched = self.watched()
        if watched is None or self.newest is None:
            return None
        return Marks({"n1": self.newest}, watched)


def echo(
    number: Micros,
    previous: Micros,
    node: Node = "n1",
    partition: int = 0,
    steady: bool = True,
    tried: Micros = 0,
) -> Echo:
    """A canary as it came. Its number is its time as well, and ``previous`` when one was tried."""
    before = tried or previous
    canary = Canary(node, number, previous, steady, number - before if before else 0, at=number)
    return Echo(canary, TOPIC, partition)


def of_slice(*echoes: Echo) -> list[Echoes]:
    """The echoes of a slice in the order of their offsets, as a worker folds them."""
    return folded(enumerate(echoes), RULES.longest_pause)


def reached(number: Micros, missing_since: Micros | None = None) -> Reached:
    """A lane that was heard up to this canary."""
    return Reached(Mark(number, number), missing_since)
