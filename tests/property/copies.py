"""A model of token ranges with several copies, and of the agents that send their commit logs.

It shares no code with the product. Time is counted in ticks. What a node logs is sent one tick
later, if its agent runs. Of the agents an observer has what their canaries show: by node the time
before which everything was sent (`Node.sent`), and the spans of which nothing will come
(`Node.lost`), by that node's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

Time = int
Name = str
"""A node; its first letter is its data centre."""

Span = tuple[Time, Time]
"""From a time to a later one, without the latter."""

Enough = Callable[[Collection[Name]], bool]
"""Whether these replicas of one range alone can acknowledge a write, or answer a read."""


def quorum(copies: int) -> Enough:
    """QUORUM over all data centres."""
    return lambda names: len(names) > copies // 2


def local_quorum(copies: int, *centres: str) -> Enough:
    """LOCAL_QUORUM, of users in each of these data centres; ``copies`` in each."""
    return lambda names: any(_of(names, each) > copies // 2 for each in centres)


def each_quorum(copies: int, *centres: str) -> Enough:
    """EACH_QUORUM; ``copies`` in each data centre."""
    return lambda names: all(_of(names, each) > copies // 2 for each in centres)


def one(names: Collection[Name]) -> bool:
    """ONE: a weak level."""
    return bool(names)


def _of(names: Collection[Name], centre: str) -> int:
    return sum(name[0] == centre for name in names)


@dataclass(frozen=True)
class Layout:
    """The replicas of each range, and the level of reads and writes."""

    ranges: tuple[tuple[Name, ...], ...]
    enough: Enough

    @property
    def names(self) -> tuple[Name, ...]:
        return tuple(sorted({name for names in self.ranges for name in names}))


A, B, C = THREE = ("a1", "a2", "a3")
BOTH = (*THREE, "b1", "b2", "b3")
RING = (*THREE, "a4", "a5")

ONE_RANGE = Layout((THREE,), quorum(3))
LAYOUTS = {
    "one range": ONE_RANGE,
    "five nodes": Layout(tuple((*RING, *RING)[i : i + 3] for i in range(5)), quorum(3)),
    "two and one": Layout((("a1", "a2", "b1"), ("a2", "a3", "b1")), quorum(3)),
    "three and three": Layout((BOTH,), quorum(6)),
    "local": Layout((BOTH,), local_quorum(3, "a", "b")),
    "local in one": Layout((BOTH,), local_quorum(3, "a")),
    "each": Layout((BOTH,), each_quorum(3, "a", "b")),
}


class Agent(Enum):
    """What the agent of a node does. SKIPS: what it has not sent is lost until it goes on."""

    SENDS = auto()
    STOPPED = auto()
    SKIPS = auto()


@dataclass(slots=True)
class Node:
    """A replica and its agent. ``log`` is what was logged and not sent; ``holds`` are its rows."""

    ahead: Time = 0
    holds: set[int] = field(default_factory=set)
    log: list[tuple[Time, int]] = field(default_factory=list)
    agent: Agent = Agent.SENDS
    sent: Time = 0
    lost: tuple[Span, ...] = ()

    def copy(self) -> Node:
        return replace(self, holds=set(self.holds), log=list(self.log))

    def take(self, write: int, now: Time) -> None:
        """Apply a mutation through the commit log: of a user, a hint, or a read repair."""
        self.holds.add(write)
        self.log.append((now, write))

    def send(self, before: Time) -> list[int]:
        """What is sent now: all that was logged before a time."""
        self.sent = max(self.sent, before)
        sent = [write for at, write in self.log if at < before]
        self.log = [each for each in self.log if each[0] >= before]
        return sent

    def lose(self, now: Time) -> None:
        """What was not sent is lost, which canaries show."""
        self.log.clear()
        if self.sent <= now:
            self.lost = (*self.lost, (self.sent, now + 1))
            self.sent = now + 1
        self.agent = Agent.SENDS


@dataclass(frozen=True, slots=True)
class Write:
    """A write of a user. ``acked``: when its user was told so; ``shown``: when a read showed it."""

    range: int
    begun: Time
    enough: Enough
    landed: tuple[Name, ...] = ()
    acked: Time | None = None
    shown: Time | None = None


class ReadRepair(Enum):
    """The table's option ``read_repair``."""

    BLOCKING = auto()
    NONE = auto()


@dataclass(slots=True)
class World:
    """All nodes, all writes, those in flight with the time when they arrive, and what was heard."""

    layout: Layout
    nodes: dict[Name, Node]
    now: Time = 0
    writes: list[Write] = field(default_factory=list)
    in_flight: list[tuple[Time, Name, int]] = field(default_factory=list)
    heard: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, layout: Layout) -> World:
        return cls(layout, {name: Node() for name in layout.names})

    def copy(self) -> World:
        nodes = {name: node.copy() for name, node in self.nodes.items()}
        known = list(self.writes), list(self.in_flight), set(self.heard)
        return World(self.layout, nodes, self.now, *known)

    def tick(self) -> None:
        """A tick passes: agents send, and what was in flight arrives."""
        self.now += 1
        for node in self.nodes.values():
            if node.agent is Agent.SENDS:
                self.heard.update(node.send(self.now - 1))
        due = [each for each in self.in_flight if each[0] <= self.now]
        self.in_flight = [each for each in self.in_flight if each[0] > self.now]
        for _, name, write in due:
            self._land(name, write)

    # --- users

    def write(self, in_range: int, late: dict[Name, Time], enough: Enough | None = None) -> int:
        """A write that reaches these replicas so much later; it is acknowledged once enough have.

        If it is late at all, it reaches them while other things happen. A level that can never be
        reached makes it an unacknowledged one.
        """
        self.writes.append(Write(in_range, self.now, enough or self.layout.enough))
        number = len(self.writes) - 1
        for name, by in late.items():
            if by:
                self.in_flight.append((self.now + by, name, number))
            else:
                self._land(name, number)
        return number

    def _land(self, name: Name, number: int) -> None:
        self.nodes[name].take(number, self.now)
        write = self.writes[number]
        landed = (*write.landed, name)
        acked = self.now if write.acked is None and write.enough(landed) else write.acked
        self.writes[number] = replace(write, landed=landed, acked=acked)

    def read(
        self, in_range: int, names: Sequence[Name], repair: ReadRepair = ReadRepair.BLOCKING
    ) -> None:
        """A read of these replicas: each of them has what was shown, before it is shown."""
        asked = [self.nodes[name] for name in names]
        shown = self._rows(in_range, names)
        if repair is ReadRepair.BLOCKING:
            for node in asked:
                for write in sorted(shown - node.holds):
                    node.take(write, self.now)
        for write in shown:
            if self.writes[write].shown is None:
                self.writes[write] = replace(self.writes[write], shown=self.now)

    def _rows(self, in_range: int, names: Iterable[Name]) -> set[int]:
        held = set[int]().union(*(self.nodes[name].holds for name in names))
        return {write for write in held if self.writes[write].range == in_range}

    # --- the cluster

    def hint(self, write: int, name: Name) -> None:
        """A hint is replayed, however late."""
        if write not in self.nodes[name].holds:
            self.nodes[name].take(write, self.now)

    def repair(self, in_range: int) -> None:
        """`nodetool repair`, without `cdc_on_repair_enabled`: rows are streamed past the log."""
        names = self.layout.ranges[in_range]
        rows = self._rows(in_range, names)
        for name in names:
            self.nodes[name].holds |= rows

    def repair_through_the_log(self, in_range: int) -> None:
        """`nodetool repair` with `cdc_on_repair_enabled`: streamed rows are logged, too."""
        names = self.layout.ranges[in_range]
        for write in sorted(self._rows(in_range, names)):
            for name in names:
                self.hint(write, name)

    def replace(self, name: Name, sources: dict[int, Name]) -> None:
        """The node comes back with empty disks, and has each range streamed from another one.

        What it had logged and not sent is lost. Its host id is as before.
        """
        rows = [self._rows(number, [source]) for number, source in sources.items()]
        self.nodes[name].lose(self.now)
        self.nodes[name].holds = set[int]().union(*rows)

    def crash(self, name: Name) -> None:
        """The machine fails: the end of the commit log was not synced, and no canary was in it.

        Those rows were in memory only. Nothing shows that: the next canary names the one before.
        """
        node = self.nodes[name]
        node.holds -= {write for at, write in node.log if at >= self.now - 1}
        node.log = [each for each in node.log if each[0] < self.now - 1]

    # --- agents

    def stop(self, name: Name) -> None:
        self.nodes[name].agent = Agent.STOPPED

    def skip(self, name: Name) -> None:
        """From now on it loses what it has not sent: `cdc_raw` overflows, or segments are lost."""
        self.nodes[name].agent = Agent.SKIPS

    def go_on(self, name: Name) -> None:
        if self.nodes[name].agent is Agent.SKIPS:
            self.nodes[name].lose(self.now)
        self.nodes[name].agent = Agent.SENDS
