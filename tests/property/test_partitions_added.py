"""Partitions are added to the agents' topic while canaries and mail are written.

The canaries' writer learns of them within a minute, each agent some time before or after, between
any two records. Agents may lag, processes may start anew. No loss is reported, for there is none;
nothing is proven that has not come; and the frontier goes on.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.capture.chain import Mark
from reconcilers.capture.frontier import Canary, Echo, Frontier, FrontierRules, Node, Span
from reconcilers.words.model import SECOND, Micros
from streaming.canary.writer import CanaryWriter, PlacedCanaries
from streaming.topics.lanes import KNOWN_AFTER, PARTITIONS_EVERY, Lanes, came_astray, leads_to
from tests.builders.canaries import TOPIC, of_slice
from tests.builders.rows import NOW

STEP_S = 10
"""A canary is written every so many seconds."""
BEGINS_S, LEARNED_S, ENDS_S = 200, 300, 200 + int(KNOWN_AFTER) + 400
RULES = FrontierRules(lost_after=60 * SECOND, longest_pause=600 * SECOND)
NODES = ("4f7d", "b12c")


@dataclass(frozen=True)
class Sent:
    """A record of an agent: a canary's row, or mail that was written then."""

    key: tuple[str, int]
    at: Micros
    canary: Canary | None = None
    partitions: int = 0
    first: bool = True

    def may_learn(self, partitions: int) -> bool:
        """Whether the agent may learn of the new partitions before it sends this.

        Not within a canary that was written before the writer knew: that is a matter of
        milliseconds in one minute, and one canary would be missing.
        """
        return self.first or self.partitions == partitions


@dataclass
class Agent:
    """Sends what its node has written in that order, some seconds later.

    Its producer learns of the new partitions after so many more records. Odd ones take longer.
    """

    lag: int
    learns_s: int
    learns_after: int
    slow_s: int
    known: int
    log: deque[Sent] = field(default_factory=deque)

    def send(self, now: Micros, second: int, partitions: int) -> Iterator[tuple[Micros, int, Sent]]:
        """When each of its records comes, in which partition."""
        while self.log and self.log[0].at + self.lag * SECOND <= now:
            record = self.log.popleft()
            if second >= self.learns_s:
                self.learns_after -= 1
            if self.learns_after < 0 and record.may_learn(partitions):
                self.known = partitions
            partition = leads_to(*record.key, self.known)
            late = self.slow_s * SECOND if partition % 2 else 0
            yield now + late, partition, record


@dataclass
class Topic:
    """The canaries' table, the topic, and the clock of all processes."""

    partitions: int
    agents: dict[Node, Agent]
    now: Micros = NOW
    rows: dict[Node, dict[int, Mark]] = field(default_factory=lambda: {each: {} for each in NODES})
    coming: list[tuple[Micros, int, Sent]] = field(default_factory=list)
    missing: dict[Node, set[Micros]] = field(
        default_factory=lambda: {each: set() for each in NODES}
    )

    # --- the canaries' table

    @property
    def ring(self) -> Topic:
        return self

    def check(self) -> None:
        return None

    def places(self) -> Mapping[Node, str]:
        return {node: f"{node}/0" for node in NODES}

    def name(self) -> str:
        return "ring"

    def steady(self) -> bool:
        return True

    def newest(self) -> dict[Node, dict[int, Mark]]:
        return {node: dict(rows) for node, rows in self.rows.items()}

    def write(self, places: PlacedCanaries, partitions: int) -> frozenset[Node]:
        for place, lanes in places.items():
            node = place.partition("/")[0]
            for lane in sorted(lanes):
                canary = replace(lanes[lane], at=self.now)
                self.rows[node][lane] = Mark(canary.number, self.now)
                sent = Sent((place, lane), self.now, canary, partitions, lane == min(lanes))
                self.agents[node].log.append(sent)
        return frozenset(NODES)

    def mail(self, node: Node, rng: random.Random) -> None:
        self.agents[node].log.append(Sent((node, rng.randrange(10**6)), self.now))
        self.missing[node].add(self.now)

    # --- what comes

    def came(self, second: int) -> list[Echo]:
        for agent in self.agents.values():
            self.coming += agent.send(self.now, second, self.partitions)
        due = [each for each in self.coming if each[0] <= self.now]
        self.coming = [each for each in self.coming if each[0] > self.now]
        for node, agent in self.agents.items():
            waiting = [each for _, _, each in self.coming] + [*agent.log]
            self.missing[node] &= {each.at for each in waiting if each.key[0] == node}
        return [self._echo(*each) for each in due if each[2].canary is not None]

    def _echo(self, _at: Micros, partition: int, record: Sent) -> Echo:
        assert record.canary is not None
        astray = came_astray(*record.key, record.partitions, partition)
        return Echo(record.canary, TOPIC, partition, astray)


@dataclass
class Clock:
    topic: Topic

    def now(self) -> Micros:
        return self.topic.now

    def steady(self) -> float:
        return self.topic.now / SECOND

    def trouble(self) -> None:
        return None


@dataclass
class Partitions:
    """What Kafka tells the writer."""

    topic: Topic

    def missing(self, _topics: Iterable[str]) -> list[str]:
        return []

    def partitions(self, _topic: str) -> list[int]:
        return [*range(self.topic.partitions)]


def writer(topic: Topic) -> CanaryWriter:
    lanes = Lanes(cast(Any, Partitions(topic)), TOPIC, Clock(topic).steady)
    made = CanaryWriter(topic, lanes, Clock(topic))
    made.begin()
    return made


agents = st.builds(
    Agent,
    lag=st.sampled_from([0, 15, 200]),
    learns_s=st.integers(BEGINS_S, BEGINS_S + LEARNED_S),
    learns_after=st.integers(0, 40),
    slow_s=st.sampled_from([0, 0, 25]),
    known=st.just(0),
)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 7),
    st.tuples(agents, agents),
    st.sampled_from([None, 210, 290, 500]),
    st.integers(0, 10**6),
)
def test_no_loss_is_reported_nothing_is_proven_too_soon_and_the_frontier_goes_on(
    old: int, added: int, of_nodes: tuple[Agent, Agent], restart_s: int | None, seed: int
) -> None:
    rng = random.Random(seed)
    for agent in of_nodes:
        agent.known = old
    topic = Topic(old, dict(zip(NODES, of_nodes, strict=True)))
    frontier, writing, lost = Frontier(RULES), writer(topic), list[Span]()
    stands = 0
    slack = max(agent.lag + agent.slow_s for agent in of_nodes) + 3 * STEP_S
    for second in range(0, ENDS_S, STEP_S):
        topic.now = NOW + second * SECOND
        if second == BEGINS_S:
            topic.partitions += added
        if second == restart_s:
            writing = writer(topic)
        for node in NODES:
            topic.mail(node, rng)
        writing.write()
        lost += frontier.hear(of_slice(*topic.came(second)), topic.now)
        until = frontier.until([(TOPIC, number) for number in range(topic.partitions)])
        for node, at in until.items():
            assert not [each for each in topic.missing[node] if each < at], "it has not come yet"
        stands = 0 if min(until.values(), default=0) >= topic.now - slack * SECOND else stands + 1
        if slack < second < BEGINS_S or second > BEGINS_S + PARTITIONS_EVERY + slack:
            assert stands * STEP_S < slack, "the frontier stands"
    assert lost == []
