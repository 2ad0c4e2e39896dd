"""What the frontier costs: steps in proportion to the echoes, whatever is missing.

It decides as the plain rule does, which takes each echo by itself (`tests.builders.one_by_one`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import partialmethod
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.capture.frontier import Canary, Echo, Frontier, FrontierRules
from reconcilers.capture.lane_echoes import folded
from tests.builders.canaries import RULES, TOPIC, of_slice
from tests.builders.one_by_one import PlainFrontier

COMPARISONS = ("lt", "le", "gt", "ge", "eq")


class Counted(int):
    """A number whose comparisons are counted."""

    made: ClassVar[Counter[str]] = Counter()
    __hash__ = int.__hash__

    def compared(self, other: int, *, how: str) -> bool:
        Counted.made[how] += 1
        return bool(getattr(int, f"__{how}__")(self, other))


for each in COMPARISONS:
    setattr(Counted, f"__{each}__", partialmethod(Counted.compared, how=each))


def night(seconds: int, missing: set[int]) -> list[Echo]:
    """A canary each second of one lane, without those that are missing."""
    return [
        Echo(Canary("n1", Counted(number), Counted(number - 1), at=number), TOPIC, 0)
        for number in range(1, seconds + 1)
        if number not in missing
    ]


def comparisons(seconds: int, missing: set[int], slices: int = 10) -> int:
    """How many numbers are compared while a backlog is heard in slices."""
    frontier, echoes = Frontier(RULES), night(seconds, missing)
    size = -(-len(echoes) // slices)
    Counted.made.clear()
    for number in range(slices):
        frontier.hear(of_slice(*echoes[number * size : (number + 1) * size]), 1)
    return Counted.made.total()


MISSING: dict[str, set[int]] = {
    "one": {5},
    "one of ten": {*range(10, 1_000, 10)},
    "every second": {*range(2, 1_000, 2)},
}


@pytest.mark.parametrize("which", MISSING)
def test_canaries_that_never_come_cost_no_more_than_a_few_steps_an_echo(which: str) -> None:
    with_all, without = comparisons(1_000, set()), comparisons(1_000, MISSING[which])
    assert without <= 2 * with_all
    assert without <= 20 * 1_000


def test_twice_as_many_echoes_cost_twice_as_much() -> None:
    once, twice = comparisons(1_000, {5}), comparisons(2_000, {5}, slices=20)
    assert twice <= 2.2 * once


# --- the same decisions ---------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> tuple[FrontierRules, list[list[Echo]]]:
    """Slices of echoes of two lanes: some canaries unanswered, lost, repeated, out of order.

    The rules differ where an unanswered canary comes after a later one that is not steady, or that
    ended a pause. So if canaries come late, all are steady and no pause is long.
    """
    rng = random.Random(draw(st.integers(0, 10**6)))
    lost, late = draw(st.sampled_from([0.0, 0.1, 0.5])), draw(st.sampled_from([0, 0, 2, 30]))
    came: list[tuple[float, Echo]] = []
    number = acknowledged = tried = 0
    for at in range(draw(st.integers(1, 40))):
        number += rng.choice([1, 1, 1, 9])
        steady = bool(late) or rng.random() < 0.9
        idle = number - tried if tried else 0
        canary = Canary("n1", number, acknowledged, steady, idle, at=number)
        fate, tried = rng.choice(["answered", "answered", "done", "not done"]), number
        acknowledged = number if fate == "answered" else acknowledged
        for partition in range(2) if fate != "not done" else ():
            times = rng.choice([1, 1, 1, 2]) if rng.random() >= lost else 0
            echo = Echo(canary, TOPIC, partition)
            came += [(at + late * rng.random(), echo) for _ in range(times)]
    echoes = [echo for _, echo in sorted(came, key=lambda each: each[0])]
    size = draw(st.integers(1, 12))
    rules = FrontierRules(draw(st.integers(1, 6)), 10**9 if late else 4)
    return rules, [echoes[at : at + size] for at in range(0, len(echoes), size)]


def state(frontier: Frontier) -> Iterator[tuple[object, ...]]:
    for lane, chain in sorted(frontier.chains.items()):
        told = chain.reached.number, chain.proven.number, chain.missing_since
        yield lane, *told, bool(chain.ahead)


def plain_state(frontier: PlainFrontier) -> Iterator[tuple[object, ...]]:
    for lane, chain in sorted(frontier.chains.items()):
        yield lane, chain.reached, chain.proven, chain.missing_since, bool(chain.ahead)


@given(histories())
def test_it_decides_as_the_plain_rule(history: tuple[FrontierRules, list[list[Echo]]]) -> None:
    rules, slices = history
    plain, frontier = PlainFrontier(rules), Frontier(rules)
    for now, echoes in enumerate(slices, 1):
        expected, found = (
            plain.hear(echoes, now),
            frontier.hear(folded(enumerate(echoes), rules.longest_pause), now),
        )
        assert sorted(found, key=str) == sorted(expected, key=str)
        assert list(state(frontier)) == list(plain_state(plain))
