"""The frontier: what the echoes of canaries prove of the writes before them. Pure.

A *canary* is a row that is written to each node every second, in a table whose changes are captured
too. Its *echo* is the event of that write in the topic of the watched tables. A node's agent reads
the commit log in order and Kafka keeps the order of a partition. So an echo proves of its node and
partition that whatever was written there before the canary lies before the echo.

Each canary names the last one before it that was acknowledged. So the echoes tell by themselves
whether one is missing, whoever wrote them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconcilers.capture.chain import NONE, Chain, Mark, Reached, Run
from reconcilers.words.model import Micros

CANARY_TABLE = "canary"
"""In a keyspace of its own."""

Node = str
"""A node's host id."""

Lane = tuple[Node, str, int]
"""The way from a node to a partition of a topic."""

Proven = Mapping[Node, int]
"""Of each node: what was written before the answer to the canary of this number has come out."""

Times = Mapping[Node, Micros]
"""Of each node a time, by its clock."""


def node_of(place: str) -> Node:
    """Whose row it is that has this partition key: ``HOST-ID/NUMBER``."""
    return place.partition("/")[0]


def newest_of(reached: Mapping[Lane, Reached]) -> dict[Node, Micros]:
    """When the newest canary was written that came in every partition where one has come at all."""
    found: dict[Node, Mark] = {}
    for (node, *_), lane in reached.items():
        found[node] = min(found.get(node, lane.mark), lane.mark)
    return {node: mark.at for node, mark in found.items()}


@dataclass(frozen=True, slots=True)
class Marks:
    """A moment to wait for: of each node the newest canary that could be read then.

    ``watched`` names the nodes, their tokens and the captured tables, as they were.
    """

    newest: Mapping[Node, int]
    watched: str = ""

    def passed(self, proven: Proven) -> bool:
        """Whether what was written before the marks were read has come out, from every node.

        A canary that names another as acknowledged was sent after that one's answer. If the other
        could not be read yet with the marks, its answer came after them. False without any mark.
        """
        return bool(self.newest) and all(
            proven.get(node, -1) > number for node, number in self.newest.items()
        )


@dataclass(frozen=True, slots=True)
class Canary:
    """One canary of a node, in each lane.

    ``number`` grows from one canary of a node to the next, and tells no time. ``previous`` is the
    number of the last one before it that was acknowledged in its lane, 0 for none. ``steady``: no
    node was joining, leaving or moving when it was written. Else it may have reached another node,
    and proves nothing. ``idle`` is how long before it (µs, by the writer's clock) the last one was
    sent, answered or not; 0 where the writer knows of none. ``at`` is when its node took it: µs by
    that node's clock, which is measured (`streaming.monitoring.clocks`); 0 until then.
    """

    node: Node
    number: int
    previous: int
    steady: bool = True
    idle: Micros = 0
    at: Micros = 0

    def run(self) -> Run:
        """It alone, as a part of a chain.

        It was sent after the answer to the previous one, and its node took it after whatever that
        node had answered by then: so both lie before it.
        """
        mark = Mark(self.number, self.at)
        return Run(mark, self.previous, mark, Mark(self.previous, self.at) if self.steady else NONE)


@dataclass(frozen=True, slots=True)
class Echo:
    """A canary as it came out of a partition of a topic.

    ``astray`` is 0 where its key leads. If it leads elsewhere, it is the number of partitions that
    its lanes are for: the agent did not know of all of them when it sent the canary, so nothing
    that it had sent by then is in the newest.
    """

    canary: Canary
    topic: str
    partition: int
    astray: int = 0

    @property
    def lane(self) -> Lane:
        """The way that it came."""
        return self.canary.node, self.topic, self.partition


@dataclass(frozen=True, slots=True)
class Span:
    """Events of one lane may be missing that were written between two canaries (µs, node's clock).

    After ``until`` they are known again.
    """

    lane: Lane
    since: Micros
    until: Micros
    why: str

    def __str__(self) -> str:
        """As a log line names it."""
        node, topic, number = self.lane
        seconds = (self.until - self.since) / 1_000_000
        return f"node {node}, {topic}/{number}: {seconds:.0f} s {self.why}"


UNHEARD = Mark(-1)
"""Of a partition where no canary has come."""

MISSING = "whose canaries have not come"
UNWATCHED = "without any canary"


@dataclass(frozen=True, slots=True)
class FrontierRules:
    """When events count as lost, µs.

    ``lost_after``: a canary that is missing is lost so long after a later one has come.
    ``longest_pause``: so long nobody may send any before change capture could overflow unseen.
    """

    lost_after: Micros
    longest_pause: Micros


@dataclass(slots=True)
class Frontier:
    """All lanes. Up to where each was heard is kept (`reached`), and given back at the start.

    ``astray`` says of each node what its last canary that came astray proves of partitions below
    this number that the agent did not know of.
    """

    rules: FrontierRules
    chains: dict[Lane, Chain] = field(default_factory=dict)
    astray: dict[Node, tuple[Mark, int]] = field(default_factory=dict)

    def hear(self, echoes: Iterable[Echo], now: Micros) -> list[Span]:
        """Take in echoes in the order of their offsets; returns what may be lost (µs)."""
        return [*self._heard(echoes, now), *self._overdue(now)]

    def proven(self, places: Collection[tuple[str, int]]) -> dict[Node, int]:
        """What is proven of each node in all of these partitions; nothing of one without canary."""
        return {
            node: min((mark.number for mark in marks), default=UNHEARD.number)
            for node, marks in self._marks(places).items()
        }

    def until(self, places: Collection[tuple[str, int]]) -> dict[Node, Micros]:
        """Before when all that each node wrote has come out of these partitions; 0: not known."""
        return {
            node: min((mark.at for mark in marks), default=UNHEARD.at)
            for node, marks in self._marks(places).items()
        }

    def reached(self) -> dict[Lane, Reached]:
        """How far each lane was heard without a gap."""
        return {
            lane: Reached(chain.reached, chain.missing_since) for lane, chain in self.chains.items()
        }

    def newest(self) -> dict[Node, Micros]:
        """When the newest canary was written that came in all partitions where any has come."""
        return newest_of(self.reached())

    def nodes(self) -> set[Node]:
        """Those that were heard."""
        return {node for node, *_ in self.chains}

    def forget(self, node: Node) -> None:
        """It has left: nothing is heard of it any more."""
        self.chains = {lane: each for lane, each in self.chains.items() if lane[0] != node}
        self.astray.pop(node, None)

    def keep(self, places: Collection[tuple[str, int]]) -> None:
        """Forget lanes to partitions that are not read any more."""
        self.chains = {
            lane: each for lane, each in self.chains.items() if (lane[1], lane[2]) in places
        }

    def begin(self, reached: Mapping[Lane, Reached]) -> None:
        """Go on after what was heard before."""
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
        """``last`` is the partition with the highest number where a canary of the node has come."""
        if lane in self.chains:
            return self.chains[lane].proven
        node, _, number = lane
        mark, partitions = self.astray.get(node, (UNHEARD, 0))
        return mark if last < number < partitions else UNHEARD

    def _heard(self, echoes: Iterable[Echo], now: Micros) -> Iterator[Span]:
        by_lane: dict[Lane, list[Canary]] = {}
        for echo in echoes:
            by_lane.setdefault(echo.lane, []).append(echo.canary)
            if echo.astray:
                node, told = echo.canary.node, (echo.canary.run().proven, echo.astray)
                self.astray[node] = max(told, self.astray.get(node, told))
        for lane, came in by_lane.items():
            before = self.chains.get(lane) or Chain.begun(Reached(Mark(came[0].previous)))
            self.chains[lane] = before.after((each.run() for each in came), now)
            yield from self._unwatched(lane, before, came)

    def _unwatched(self, lane: Lane, before: Chain, came: Iterable[Canary]) -> Iterator[Span]:
        """Pauses without canaries that end with one of these, which came after ``before``."""
        told, newest = set[int](), before.reached
        for canary in came:
            since = canary.at - canary.idle if canary.idle else newest.at
            long = since and canary.at - since > self.rules.longest_pause
            if long and canary.number not in told and not before.has(canary.number):
                told.add(canary.number)
                yield Span(lane, since, canary.at, UNWATCHED)
            newest = max(newest, Mark(canary.number, canary.at))

    def _overdue(self, now: Micros) -> Iterator[Span]:
        for lane, chain in self.chains.items():
            if chain.waited(now) > self.rules.lost_after:
                yield Span(lane, chain.reached.at, chain.ahead[0].first.at, MISSING)
                self.chains[lane] = chain.given_up(now)
            elif now:
                self.chains[lane] = chain.waiting(now)
