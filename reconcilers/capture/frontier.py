"""The frontier: what the echoes of canaries prove about the writes before them. Pure.

A *canary* is a row that is written to each node every second, in a captured table. Its *echo* is
the event of that write in the topic of the watched tables. A node's agent reads the commit log in
order, and Kafka keeps the order of a partition. An echo therefore proves, for its node and
partition, that all earlier writes come before it.

Each canary names the last acknowledged one before it, so the echoes alone show whether one is
missing, whichever process wrote them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconcilers.capture.chain import NONE, Chain, Mark, Reached, Run
from reconcilers.words.model import Micros

CANARY_TABLE = "canary"
"""The table of canaries, in a keyspace of its own."""

Node = str
"""A node's host id."""

Lane = tuple[Node, str, int]
"""The way from a node to a partition: the node, the topic, the partition's number."""

Proven = Mapping[Node, int]
"""By node the number of a canary: all that was written before its answer has been released."""

Times = Mapping[Node, Micros]
"""By node a time (µs), by that node's clock."""


def node_of(place: str) -> Node:
    """The node of a partition key ``HOST-ID/NUMBER``."""
    return place.partition("/")[0]


def newest_of(reached: Mapping[Lane, Reached]) -> dict[Node, Micros]:
    """By node when (µs) its newest canary was written that arrived in all its partitions."""
    found: dict[Node, Mark] = {}
    for (node, *_), lane in reached.items():
        found[node] = min(found.get(node, lane.mark), lane.mark)
    return {node: mark.at for node, mark in found.items()}


@dataclass(frozen=True, slots=True)
class Marks:
    """By node the newest canary that could be read at a moment to wait for.

    ``watched`` names the nodes, their tokens and the captured tables at that moment.
    """

    newest: Mapping[Node, int]
    watched: str = ""

    def passed(self, proven: Proven) -> bool:
        """Whether all writes from before the marks were read have been released, for every node.

        A canary was sent after the answer to the one that it names. If that one could not be read
        with the marks, its answer came after them. False if there is no mark.
        """
        return bool(self.newest) and all(
            proven.get(node, -1) > number for node, number in self.newest.items()
        )


@dataclass(frozen=True, slots=True)
class Canary:
    """One canary of a node, in each lane.

    ``number`` grows from canary to canary of a node, and is no time. ``previous`` is the number of
    the last acknowledged one in its lane, 0 for none. ``steady``: no node was joining, leaving or
    moving when it was written; otherwise it may have reached another node, and proves nothing.
    ``idle`` is how long before it (µs, writer's clock) the last one was sent, 0 if the writer has
    sent none. ``at`` is when its node stored it (µs, node's clock), 0 until that is measured
    (`streaming.monitoring.clocks`).
    """

    node: Node
    number: int
    previous: int
    steady: bool = True
    idle: Micros = 0
    at: Micros = 0

    def run(self) -> Run:
        """A run of this canary alone.

        It was sent after the answer to the previous one, and stored after its node's earlier
        answers.
        """
        mark = Mark(self.number, self.at)
        return Run(mark, self.previous, mark, Mark(self.previous, self.at) if self.steady else NONE)


@dataclass(frozen=True, slots=True)
class Echo:
    """A canary as it was read from a partition of a topic.

    ``astray`` is 0 if the canary is in the partition of its key. Otherwise it is the number of
    partitions that its lanes are for: the agent had no list of all partitions when it sent the
    canary, so it had sent nothing to the newest ones.
    """

    canary: Canary
    topic: str
    partition: int
    astray: int = 0

    @property
    def lane(self) -> Lane:
        """The lane that it was received through."""
        return self.canary.node, self.topic, self.partition


class PauseEnd(NamedTuple):
    """A canary that may end a long time without canaries; ``newest`` arrived before it in a slice.

    The other fields are those of `Canary`.
    """

    number: int
    idle: Micros
    at: Micros
    newest: Mark


class Echoes(NamedTuple):
    """The echoes of one lane in a slice, folded.

    ``previous`` is the number that the first of them names. ``ends`` may end long pauses.
    ``astray`` is the newest mark that came astray, with its number of partitions, or None.
    """

    lane: Lane
    previous: int
    runs: tuple[Run, ...]
    ends: tuple[PauseEnd, ...] = ()
    astray: tuple[Mark, int] | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A time between two canaries (µs, node's clock) of which a lane may lack events."""

    lane: Lane
    since: Micros
    until: Micros
    why: str

    def __str__(self) -> str:
        node, topic, number = self.lane
        seconds = (self.until - self.since) / 1_000_000
        return f"node {node}, {topic}/{number}: {seconds:.0f} s {self.why}"


UNHEARD = Mark(-1)

MISSING = "whose canaries have not come"
UNWATCHED = "without any canary"


@dataclass(frozen=True, slots=True)
class FrontierRules:
    """When events count as lost, in µs.

    A missing canary is lost ``lost_after`` after a later one arrived. Without canaries for longer
    than ``longest_pause``, change capture may have overflowed unnoticed.
    """

    lost_after: Micros
    longest_pause: Micros


@dataclass(slots=True)
class Frontier:
    """All lanes. How far each was received (`reached`) is stored, and restored by `begin`.

    ``astray`` has by node the newest mark of a canary that came astray, and a number of partitions:
    the mark holds for partitions below that number which the agent did not have.
    """

    rules: FrontierRules
    chains: dict[Lane, Chain] = field(default_factory=dict)
    astray: dict[Node, tuple[Mark, int]] = field(default_factory=dict)

    def hear(self, echoes: Iterable[Echoes], now: Micros) -> list[Span]:
        """Add the echoes of a slice, folded; return the spans that may be lost."""
        return [*self._heard(echoes, now), *self._overdue(now)]

    def proven(self, places: Collection[tuple[str, int]]) -> dict[Node, int]:
        """By node the canary that is proven in all these partitions; -1 if one has no canary."""
        return {
            node: min((mark.number for mark in marks), default=UNHEARD.number)
            for node, marks in self._marks(places).items()
        }

    def until(self, places: Collection[tuple[str, int]]) -> dict[Node, Micros]:
        """By node the time (µs) before which all its writes were released; 0: unknown."""
        return {
            node: min((mark.at for mark in marks), default=UNHEARD.at)
            for node, marks in self._marks(places).items()
        }

    def reached(self) -> dict[Lane, Reached]:
        """How far each lane was received without a gap."""
        return {
            lane: Reached(chain.reached, chain.missing_since) for lane, chain in self.chains.items()
        }

    def newest(self) -> dict[Node, Micros]:
        """By node when (µs) its newest canary was written that arrived in all its partitions."""
        return newest_of(self.reached())

    def nodes(self) -> set[Node]:
        """The nodes of which a canary was received."""
        return {node for node, *_ in self.chains}

    def forget(self, node: Node) -> None:
        """Remove a node that has left the cluster."""
        self.chains = {lane: each for lane, each in self.chains.items() if lane[0] != node}
        self.astray.pop(node, None)

    def keep(self, places: Collection[tuple[str, int]]) -> None:
        """Remove the lanes of partitions that are no longer read."""
        self.chains = {
            lane: each for lane, each in self.chains.items() if (lane[1], lane[2]) in places
        }

    def begin(self, reached: Mapping[Lane, Reached]) -> None:
        """Continue from what an earlier process received."""
        self.chains = {lane: Chain.begun(each) for lane, each in reached.items()}

    def _marks(self, places: Collection[tuple[str, int]]) -> dict[Node, list[Mark]]:
        known: dict[Node, int] = {}
        for node, _, number in self.chains:
            known[node] = max(known.get(node, number), number)
        return {
            node: [self._proven((node, *place), last) for place in places]
            for node, last in known.items()
        }

    def _proven(self, lane: Lane, last: int) -> Mark:
        """The mark of a lane; ``last`` is the highest partition with a canary of the node."""
        if lane in self.chains:
            return self.chains[lane].proven
        node, _, number = lane
        mark, partitions = self.astray.get(node, (UNHEARD, 0))
        return mark if last < number < partitions else UNHEARD

    def _heard(self, echoes: Iterable[Echoes], now: Micros) -> Iterator[Span]:
        for each in echoes:
            if each.astray is not None:
                node = each.lane[0]
                self.astray[node] = max(each.astray, self.astray.get(node, each.astray))
            before = self.chains.get(each.lane) or Chain.begun(Reached(Mark(each.previous)))
            self.chains[each.lane] = before.after(each.runs, now)
            yield from self._unwatched(each.lane, before, each.ends)

    def _unwatched(self, lane: Lane, before: Chain, ends: Iterable[PauseEnd]) -> Iterator[Span]:
        told = set[int]()
        for end in ends:
            since = end.at - end.idle if end.idle else max(before.reached, end.newest).at
            long = since and end.at - since > self.rules.longest_pause
            if long and end.number not in told and not before.has(end.number):
                told.add(end.number)
                yield Span(lane, since, end.at, UNWATCHED)

    def _overdue(self, now: Micros) -> Iterator[Span]:
        for lane, chain in self.chains.items():
            if chain.waited(now) > self.rules.lost_after:
                yield Span(lane, chain.reached.at, chain.ahead[0].first.at, MISSING)
                self.chains[lane] = chain.given_up(now)
            elif now:
                self.chains[lane] = chain.waiting(now)
