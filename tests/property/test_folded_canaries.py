"""Canaries that a worker folds by lane decide as those that the driver takes in one by one."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.capture.chain import Chain, Mark, Reached
from reconcilers.capture.frontier import (
    UNWATCHED,
    Canary,
    Echo,
    Frontier,
    FrontierRules,
    Lane,
    Span,
)
from reconcilers.capture.lane_echoes import folded
from reconcilers.words.model import Micros
from tests.builders.canaries import TOPIC

PARTITIONS = 3
PLACES = [(TOPIC, number) for number in range(PARTITIONS + 1)]
"""The last one has no canary: what comes astray may speak for it."""


class Unfolded(Frontier):
    """Takes in each echo of a slice, as the driver did when all of them travelled to it."""

    def hear_each(self, echoes: Iterable[Echo], now: Micros) -> list[Span]:
        return [*self._each(echoes, now), *self.hear((), now)]

    def _each(self, echoes: Iterable[Echo], now: Micros) -> Iterator[Span]:
        by_lane: dict[Lane, list[Canary]] = {}
        for echo in echoes:
            by_lane.setdefault(echo.lane, []).append(echo.canary)
            if echo.astray:
                node, told = echo.canary.node, (echo.canary.run().proven, echo.astray)
                self.astray[node] = max(told, self.astray.get(node, told))
        for lane, came in by_lane.items():
            before = self.chains.get(lane) or Chain.begun(Reached(Mark(came[0].previous)))
            self.chains[lane] = before.after((each.run() for each in came), now)
            told_of, newest = set[int](), before.reached
            for canary in came:
                since = canary.at - canary.idle if canary.idle else newest.at
                long = since and canary.at - since > self.rules.longest_pause
                if long and canary.number not in told_of and not before.has(canary.number):
                    told_of.add(canary.number)
                    yield Span(lane, since, canary.at, UNWATCHED)
                newest = max(newest, Mark(canary.number, canary.at))


@dataclass(frozen=True)
class Story:
    """Slices of echoes with their offsets; the stream is started again before some of them."""

    rules: FrontierRules
    slices: list[list[tuple[int, Echo]]]
    restarts: frozenset[int]


def canaries(rng: random.Random, number: int) -> Iterator[tuple[Canary, bool]]:
    """Canaries of two nodes, and whether each was done; some pause, their writer is restarted."""
    last, acknowledged, tried = {"n1": 0, "n2": 7}, {"n1": 0, "n2": 7}, {"n1": 0, "n2": 0}
    for _ in range(number):
        node = rng.choice(list(last))
        last[node] += rng.choice([1, 1, 1, 9])
        at = 100 + last[node] + rng.choice([0, 0, 0, 40])
        idle = 0 if rng.random() < 0.1 else at - (tried[node] or at)
        yield (
            Canary(node, last[node], acknowledged[node], rng.random() < 0.8, max(idle, 0), at),
            rng.random() < 0.9,
        )
        tried[node] = at
        if rng.random() < 0.7:
            acknowledged[node] = last[node]


@st.composite
def stories(draw: st.DrawFn, late: tuple[int, ...] = (0, 0, 3, 30)) -> Story:
    """Some canaries are lost, repeated, late; workers return a slice's in any order."""
    rng = random.Random(draw(st.integers(0, 10**9)))
    lost, by = draw(st.sampled_from([0.0, 0.1, 0.5])), draw(st.sampled_from(late))
    came: list[tuple[float, Echo]] = []
    for sent, (canary, done) in enumerate(canaries(rng, draw(st.integers(1, 60)))):
        for partition in range(PARTITIONS) if done else ():
            astray = PARTITIONS + 1 if rng.random() < 0.1 else 0
            for _ in range(rng.choice([1, 1, 1, 2]) if rng.random() >= lost else 0):
                at = sent + by * rng.random()
                came.append((at, Echo(canary, TOPIC, partition, astray)))
    echoes = [*enumerate(echo for _, echo in sorted(came, key=lambda each: each[0]))]
    size = draw(st.integers(1, 40))
    slices = [echoes[at : at + size] for at in range(0, len(echoes), size)]
    again = draw(st.frozensets(st.integers(1, max(len(slices), 1)), max_size=2))
    rules = FrontierRules(draw(st.integers(1, 6)), draw(st.sampled_from([4, 20, 10**9])))
    return Story(rules, slices, again)


def by_worker(each: list[tuple[int, Echo]], rules: FrontierRules) -> bytes:
    mixed = random.Random(len(each)).sample(each, len(each))
    return pickle.dumps(folded(mixed, rules.longest_pause))


def waits(frontier: Frontier) -> dict[Lane, tuple[object, ...]]:
    return {
        lane: (chain.reached, chain.missing_since, [each.reached for each in chain.ahead])
        for lane, chain in frontier.chains.items()
    }


class Both:
    """The same slices, folded and not; each canary of a lane that came so far, in any process."""

    def __init__(self, rules: FrontierRules) -> None:
        self.rules = rules
        self.came: dict[Lane, list[Canary]] = {}
        self.begin({})

    def begin(self, reached: Mapping[Lane, Reached]) -> None:
        self.unfolded, self.folded = Unfolded(self.rules), Frontier(self.rules)
        for each in (self.unfolded, self.folded):
            each.begin(reached)

    def hear(self, echoes: list[tuple[int, Echo]], now: Micros) -> None:
        for _, echo in echoes:
            self.came.setdefault(echo.lane, []).append(echo.canary)
        spans = self.unfolded.hear_each([echo for _, echo in echoes], now)
        assert self.folded.hear(pickle.loads(by_worker(echoes, self.rules)), now) == spans
        assert waits(self.folded) == waits(self.unfolded)
        assert self.folded.astray == self.unfolded.astray

    def most_proven(self, lane: Lane) -> int:
        steady = [each for each in self.came.get(lane, ()) if each.steady]
        reached = self.folded.chains[lane].reached.number
        return max((each.previous for each in steady if each.number <= reached), default=0)


@given(stories())
def test_folded_or_not_the_same_canaries_came_and_are_missing(story: Story) -> None:
    """What comes late or again, at or before the mark where a lane begins, may prove more."""
    both = Both(story.rules)
    for now, echoes in enumerate(story.slices, 1):
        if now in story.restarts:
            both.begin(both.folded.reached())
        both.hear(echoes, now)
        for lane, chain in both.folded.chains.items():
            least = both.unfolded.chains[lane].proven.number
            assert least <= chain.proven.number <= both.most_proven(lane)


@given(stories(late=(0,)))
def test_in_order_they_prove_the_same(story: Story) -> None:
    both = Both(story.rules)
    for now, echoes in enumerate(story.slices, 1):
        both.hear(echoes, now)
        assert both.folded.proven(PLACES) == both.unfolded.proven(PLACES)
        assert both.folded.until(PLACES) == both.unfolded.until(PLACES)
