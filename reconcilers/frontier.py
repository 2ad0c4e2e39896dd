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
from dataclasses import dataclass, field, replace

from reconcilers.model import Micros

CANARY_TABLE = "canary"
"""In a keyspace of its own."""

Node = str
"""A node's host id."""

Lane = tuple[Node, str, int]
"""The way from a node to a partition of a topic."""

Proven = Mapping[Node, Micros]
"""Of each node: what was written before the answer to the canary of this number has come out."""


def node_of(place: str) -> Node:
    """Whose row it is that has this partition key: ``HOST-ID/NUMBER``."""
    return place.partition("/")[0]


def newest_of(reached: Mapping[Lane, Micros]) -> dict[Node, Micros]:
    """Of each node the newest canary that came in every partition where one has come at all."""
    found: dict[Node, Micros] = {}
    for (node, *_), number in reached.items():
        found[node] = min(found.get(node, number), number)
    return found


@dataclass(frozen=True, slots=True)
class Marks:
    """A moment to wait for: of each node the newest canary that could be read then.

    ``watched`` names the nodes, their tokens and the captured tables, as they were.
    """

    newest: Mapping[Node, Micros]
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

    ``number`` grows from one canary of a node to the next: µs of its writer's clock, but never
    less. ``previous`` is the number of the last one before it that was acknowledged, ``tried`` that
    of the last one that was sent at all; 0 where there is none. ``steady``: no node was joining,
    leaving or moving when it was written. Else it may have reached another node, and proves
    nothing.
    """

    node: Node
    number: Micros
    previous: Micros
    steady: bool = True
    tried: Micros = 0


@dataclass(frozen=True, slots=True)
class Echo:
    """A canary as it came out of a partition of a topic."""

    canary: Canary
    topic: str
    partition: int

    @property
    def lane(self) -> Lane:
        """The way that it came."""
        return self.canary.node, self.topic, self.partition


@dataclass(frozen=True, slots=True)
class Chain:
    """The canaries that came through one lane. Every acknowledged one up to ``reached`` has come.

    ``proven``: what was written before the answer to the canary of this number has come, too.
    ``ahead`` came while an earlier one is missing, since ``missing_since``.
    """

    reached: Micros
    proven: Micros = 0
    ahead: tuple[Canary, ...] = ()
    missing_since: Micros | None = None

    def after(self, canary: Canary, now: Micros) -> Chain:
        """With one more, heard now (µs); one that was heard before changes nothing."""
        if canary.number <= self.reached or canary in self.ahead:
            return self
        waiting = sorted((*self.ahead, canary), key=lambda each: each.number)
        return _joined(replace(self, ahead=tuple(waiting)), now)

    def given_up(self, now: Micros) -> Chain:
        """Going on after what is missing first, which is lost."""
        return _joined(replace(self, reached=self.ahead[0].previous, missing_since=None), now)


def _joined(chain: Chain, now: Micros) -> Chain:
    """What is ahead is taken in, as far as it follows without a gap."""
    reached, proven, left = chain.reached, chain.proven, list(chain.ahead)
    while left and left[0].previous <= reached:
        canary = left.pop(0)
        reached = canary.number
        proven = max(proven, canary.previous) if canary.steady else proven
    waits = chain.missing_since is not None and reached == chain.reached
    since = chain.missing_since if waits else now
    return Chain(reached, proven, tuple(left), since if left else None)


@dataclass(frozen=True, slots=True)
class Span:
    """Events of one lane may be missing that were written between two canaries (µs).

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
    """All lanes. Up to where each was heard is kept (`reached`), and given back at the start."""

    rules: FrontierRules
    chains: dict[Lane, Chain] = field(default_factory=dict)

    def hear(self, echoes: Iterable[Echo], now: Micros) -> list[Span]:
        """Take in echoes in the order of their offsets; returns what may be lost (µs)."""
        return [*self._heard(echoes, now), *self._overdue(now)]

    def proven(self, places: Collection[tuple[str, int]]) -> dict[Node, Micros]:
        """What is proven of each node in all of these partitions; nothing of one without canary."""
        return {
            node: min((self._proven((node, *place)) for place in places), default=-1)
            for node in self.nodes()
        }

    def reached(self) -> dict[Lane, Micros]:
        """Up to which canary each lane was heard without a gap."""
        return {lane: chain.reached for lane, chain in self.chains.items()}

    def newest(self) -> dict[Node, Micros]:
        """Of each node the newest canary that came in every partition where one has come at all."""
        return newest_of(self.reached())

    def nodes(self) -> set[Node]:
        """Those that were heard."""
        return {node for node, *_ in self.chains}

    def forget(self, node: Node) -> None:
        """It has left: nothing is heard of it any more."""
        self.chains = {lane: each for lane, each in self.chains.items() if lane[0] != node}

    def keep(self, places: Collection[tuple[str, int]]) -> None:
        """Forget lanes to partitions that are not read any more."""
        self.chains = {
            lane: each for lane, each in self.chains.items() if (lane[1], lane[2]) in places
        }

    def begin(self, reached: Mapping[Lane, Micros]) -> None:
        """Go on after what was heard before."""
        self.chains = {lane: Chain(number) for lane, number in reached.items()}

    def _proven(self, lane: Lane) -> Micros:
        chain = self.chains.get(lane)
        return -1 if chain is None else chain.proven

    def _heard(self, echoes: Iterable[Echo], now: Micros) -> Iterator[Span]:
        for echo in echoes:
            canary = echo.canary
            before = self.chains.get(echo.lane, Chain(canary.previous))
            after = self.chains[echo.lane] = before.after(canary, now)
            since = max(canary.tried, canary.previous) or before.reached
            if after != before and since and canary.number - since > self.rules.longest_pause:
                yield Span(echo.lane, since, canary.number, UNWATCHED)

    def _overdue(self, now: Micros) -> Iterator[Span]:
        for lane, chain in self.chains.items():
            since = chain.missing_since
            if since is not None and now - since > self.rules.lost_after:
                yield Span(lane, chain.reached, chain.ahead[0].number, MISSING)
                self.chains[lane] = chain.given_up(now)
