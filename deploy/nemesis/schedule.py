"""The faults of a run: which, where, when and for how long, from a seed. Pure."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

SHORTEST_S, LONGEST_S = 20, 60
PAIRS = 0.5
"""The share of rounds with two faults."""


class InjectedFault(StrEnum):
    """What is done to a process, to a node with its agent, to connections, a clock or a disk."""

    KILL_NODE = "node killed"
    PAUSE_NODE = "node paused"
    KILL_WITHOUT_HINTS = "node killed, and no hints kept for it"
    REPAIR = "nodetool repair of a node"
    REPLACE_NODE = "node replaced with empty disks"
    KILL_AGENT = "agent killed"
    PAUSE_AGENT = "agent paused"
    KILL_BROKER = "broker killed"
    PAUSE_BROKER = "broker paused"
    MOVE_LEADERS = "Kafka's leaders moved, then their broker killed"
    KILL_STREAM = "stream killed"
    PAUSE_STREAM = "stream paused"
    KILL_WORKERS = "Spark's workers killed"
    PAUSE_WORKERS = "Spark's workers paused"
    REFUSED = "connections reset and refused"
    DROPPED = "packets dropped both ways"
    ONE_WAY = "packets dropped one way"
    LOSSY = "30 % of packets lost"
    NODE_CLOCK = "clock of a node wrong"
    STREAM_CLOCK = "clock of the stream's host wrong"
    NODE_DISK = "disk of a node full"
    BROKER_DISK = "disk of the broker full"
    UPGRADE = "node upgraded with its agent"


@dataclass(frozen=True, slots=True)
class FaultChoice:
    """A fault that can be injected. Two targets of one group never have a fault at a time."""

    kind: InjectedFault
    target: str
    group: str


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault of a schedule. `at_s` (seconds) counts from the start, `for_s` from `at_s`."""

    round: int
    at_s: float
    kind: InjectedFault
    target: str
    for_s: float

    @property
    def end_s(self) -> float:
        """When it is over (seconds from the start)."""
        return self.at_s + self.for_s


def fault_schedule(
    seed: int, length_s: float, rest_s: float, choices: Sequence[FaultChoice]
) -> list[PlannedFault]:
    """Rounds of one fault or of two that overlap, each round followed by a rest.

    Each lasts 20 to 60 s. No kind comes again before every other one has come. A schedule that is
    too short for one round is empty. Raises ValueError without choices.
    """
    if not choices:
        raise ValueError("a schedule needs at least one fault that can be injected")
    chance = random.Random(f"nemesis:{seed}")
    deck = Deck(chance, choices)
    planned: list[PlannedFault] = []
    number, at_s = 1, rest_s
    while True:
        faults = list(_round(chance, deck, number, at_s))
        end_s = max(fault.end_s for fault in faults)
        if end_s + rest_s > length_s:
            return planned
        planned += faults
        number, at_s = number + 1, end_s + rest_s


def one_after_another(
    choices: Sequence[FaultChoice], rest_s: float, apart_s: float
) -> list[PlannedFault]:
    """A round for each, so far apart (s), after a rest. Each lasts as long as it takes."""
    return [
        PlannedFault(number, rest_s + (number - 1) * apart_s, each.kind, each.target, 0.0)
        for number, each in enumerate(choices, start=1)
    ]


def _round(chance: random.Random, deck: "Deck", number: int, at_s: float) -> Iterator[PlannedFault]:
    first = deck.deal()
    for_s = chance.uniform(SHORTEST_S, LONGEST_S)
    yield PlannedFault(number, at_s, first.kind, first.target, for_s)
    second = deck.deal_beside(first) if chance.random() < PAIRS else None
    if second is not None:
        later_s = at_s + chance.uniform(0, for_s)
        lasts_s = chance.uniform(SHORTEST_S, LONGEST_S)
        yield PlannedFault(number, later_s, second.kind, second.target, lasts_s)


class Deck:
    """Deals each kind once, in random order, then all of them again; a target at random."""

    def __init__(self, chance: random.Random, choices: Sequence[FaultChoice]) -> None:
        self._chance = chance
        self._choices = choices
        self._kinds: list[InjectedFault] = []

    def deal(self) -> FaultChoice:
        """The next kind, somewhere."""
        self._fill()
        kind = self._kinds.pop()
        return self._chance.choice([each for each in self._choices if each.kind is kind])

    def deal_beside(self, first: FaultChoice) -> FaultChoice | None:
        """One of the kinds that are still to come, in another group; None if there is none."""
        self._fill()
        for kind in reversed(self._kinds):
            found = [
                each for each in self._choices if each.kind is kind and each.group != first.group
            ]
            if found and kind is not first.kind:
                self._kinds.remove(kind)
                return self._chance.choice(found)
        return None

    def _fill(self) -> None:
        if not self._kinds:
            self._kinds = sorted({each.kind for each in self._choices})
            self._chance.shuffle(self._kinds)
