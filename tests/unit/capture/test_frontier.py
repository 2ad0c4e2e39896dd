"""The frontier: what echoes prove, whatever is sent twice, lost, late, or never answered."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.capture.chain import NONE, Chain
from reconcilers.capture.frontier import (
    MISSING,
    UNWATCHED,
    Canary,
    Echo,
    Frontier,
    FrontierRules,
    Marks,
    Span,
)
from reconcilers.capture.lane_echoes import folded
from tests.builders.canaries import RULES, TOPIC, echo, of_slice, reached
from tests.builders.rows import NOW, SECOND

PLACES = [(TOPIC, 0), (TOPIC, 1)]
LANE = ("n1", TOPIC, 0)


def heard(*echoes: Echo, rules: FrontierRules = RULES) -> Frontier:
    frontier = Frontier(rules)
    assert frontier.hear(of_slice(*echoes), NOW) == []
    return frontier


# --- marks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marks", "proven", "passed"),
    [
        ({"n1": 10, "n2": 20}, {"n1": 10, "n2": 20}, False),
        ({"n1": 10, "n2": 20}, {"n1": 11, "n2": 20}, False),
        ({"n1": 10, "n2": 20}, {"n1": 11, "n2": 21}, True),
        ({"n1": 10}, {"n2": 99}, False),
        ({}, {"n1": 99}, False),
    ],
    ids=["reached", "one passed", "all passed", "a node that nobody heard of", "no node at all"],
)
def test_marks_are_passed_when_a_later_canary_is_proven_of_every_node(
    marks: dict[str, int], proven: dict[str, int], passed: bool
) -> None:
    assert Marks(marks).passed(proven) is passed


# --- what is proven -------------------------------------------------------------------------------


FIRST, SECOND_ONE = echo(10, 0), echo(20, 10)
PROVEN: dict[str, tuple[list[Echo], int, dict[str, int], int]] = {
    # what was heard, of how many partitions; what is proven, and what is reached in `LANE`
    "the first canary, which may be of any time": ([echo(NOW, 0)], 1, {"n1": 0}, NOW),
    "one that names another, where none was heard before": ([echo(40, 30)], 1, {"n1": 30}, 40),
    "the one that is named as acknowledged": ([FIRST, SECOND_ONE], 1, {"n1": 10}, 20),
    "one that was never answered, not of itself": (
        [FIRST, SECOND_ONE, echo(30, 10)],
        1,
        {"n1": 10},
        30,
    ),
    "one that was not done is not missed": ([FIRST, echo(30, 10), echo(40, 30)], 1, {"n1": 30}, 40),
    "in a lane that is new none is missed": ([FIRST, echo(50, 0)], 1, {"n1": 0}, 50),
    "the partition that is furthest behind counts": (
        [FIRST, SECOND_ONE, echo(10, 0, partition=1)],
        2,
        {"n1": 0},
        20,
    ),
    "a partition without any canary": ([FIRST, SECOND_ONE], 2, {"n1": -1}, 20),
    "each node on its own": ([FIRST, SECOND_ONE, echo(15, 0, "n2")], 1, {"n1": 10, "n2": 0}, 20),
}


@pytest.mark.parametrize("case", PROVEN)
def test_what_canaries_prove(case: str) -> None:
    echoes, partitions, proven, last = PROVEN[case]
    frontier = heard(*echoes)
    assert frontier.proven(PLACES[:partitions]) == proven
    assert frontier.reached()[LANE] == reached(last)


def test_while_one_is_missing_nothing_more_is_proven_and_all_when_it_comes() -> None:
    frontier = heard(echo(10, 0), echo(40, 30), echo(30, 20))
    assert frontier.proven(PLACES[:1]) == {"n1": 0}
    frontier.hear(of_slice(echo(20, 10)), NOW)
    assert frontier.proven(PLACES[:1]) == {"n1": 30}
    assert frontier.reached() == {LANE: reached(40)}


def test_while_a_node_joins_or_leaves_nothing_is_proven() -> None:
    """The canary may have reached another node than the one whose name it has."""
    moving = heard(echo(10, 0), echo(20, 10, steady=False))
    assert moving.proven(PLACES[:1]) == {"n1": 0}
    moving.hear(of_slice(echo(30, 20)), NOW)
    assert moving.proven(PLACES[:1]) == {"n1": 20}


def test_the_newest_of_a_node_is_the_one_that_came_in_all_its_lanes() -> None:
    frontier = heard(echo(10, 0), echo(20, 10), echo(10, 0, partition=1), echo(5, 0, "n2"))
    assert frontier.newest() == {"n1": 10, "n2": 5}


def test_a_node_that_has_left_is_forgotten() -> None:
    frontier = heard(echo(10, 0), echo(5, 0, "n2"), echo(5, 0, "n2", partition=1))
    assert frontier.nodes() == {"n1", "n2"}
    frontier.forget("n2")
    assert frontier.newest() == {"n1": 10}


def test_a_slice_is_folded_in_the_order_of_its_offsets() -> None:
    """A share has them in any order: the first one tells where a lane begins."""
    (came,) = folded([(7, echo(20, 10)), (5, echo(10, 0))], RULES.longest_pause)
    assert (came.lane, came.previous) == (LANE, 0)
    assert [each.reached.number for each in came.runs] == [20]


def test_a_slice_travels_as_one_piece_a_lane_however_many_canaries_came() -> None:
    night = [
        echo(at, at - 1, node, partition)
        for at in range(2, 1_000)
        for node in ("n1", "n2")
        for partition in range(3)
        if at != 500
    ]
    came = of_slice(*night)
    assert sorted(each.lane for each in came) == [
        (node, TOPIC, partition) for node in ("n1", "n2") for partition in range(3)
    ]
    assert {len(each.runs) for each in came} == {2}, "one gap"
    assert not any(each.ends for each in came)


def test_a_partition_that_is_not_read_any_more_is_forgotten() -> None:
    frontier = heard(echo(10, 0), echo(5, 0, partition=1))
    frontier.keep(PLACES[:1])
    assert frontier.newest() == {"n1": 10}


def test_before_the_time_at_which_a_node_took_a_canary_all_is_heard() -> None:
    """By that node's clock, whatever its number."""
    frontier = Frontier(RULES)
    canaries = [Canary("n1", 7, 0, at=NOW), Canary("n1", 8, 7, at=NOW + SECOND)]
    frontier.hear(of_slice(*(Echo(each, TOPIC, 0) for each in canaries)), NOW)
    assert frontier.proven(PLACES[:1]) == {"n1": 7}
    assert frontier.until(PLACES[:1]) == {"n1": NOW + SECOND}
    assert frontier.until(PLACES) == {"n1": 0}
    assert frontier.newest() == {"n1": NOW + SECOND}


def test_a_clock_that_was_a_year_ahead_for_a_moment_dates_one_canary_and_no_other() -> None:
    year = 365 * 86_400 * SECOND
    frontier = Frontier(RULES)
    times = [NOW, NOW + year, NOW + 2 * SECOND]
    for number, at in enumerate(times, 1):
        canary = Canary("n1", number, number - 1, idle=SECOND, at=at)
        assert frontier.hear(of_slice(Echo(canary, TOPIC, 0)), NOW + 3 * SECOND) == [], "no pause"
    assert frontier.until(PLACES[:1]) == {"n1": times[-1]}
    assert frontier.newest() == {"n1": times[-1]}


# --- partitions are added -------------------------------------------------------------------------

ADDED = (TOPIC, 2)


def astray(number: int, previous: int, partitions: int = 3) -> Echo:
    """A canary whose agent did not know of partition 2."""
    return replace(echo(number, previous), astray=partitions)


def test_a_partition_that_an_agent_does_not_know_holds_nothing_of_it() -> None:
    frontier = heard(echo(10, 0), echo(20, 10), echo(10, 0, partition=1), echo(20, 10, partition=1))
    assert frontier.until([*PLACES, ADDED]) == {"n1": 0}
    frontier.hear(of_slice(astray(20, 10)), NOW)
    assert frontier.until([*PLACES, ADDED]) == {"n1": 20}
    assert frontier.proven([*PLACES, ADDED]) == {"n1": 10}


def test_that_counts_up_to_the_last_canary_of_which_it_is_known() -> None:
    frontier = heard(echo(10, 0), astray(20, 10), echo(30, 20))
    assert frontier.until(PLACES[:1]) == {"n1": 30}
    assert frontier.until([PLACES[0], ADDED]) == {"n1": 20}


def test_once_a_canary_has_come_there_it_counts_as_any_other() -> None:
    came = [astray(20, 10), echo(30, 20), echo(30, 0, partition=2), echo(40, 30), astray(40, 30)]
    frontier = heard(*came)
    assert frontier.until([PLACES[0], ADDED]) == {"n1": 30}


def test_of_a_partition_beyond_those_that_its_lanes_are_for_nothing_is_known() -> None:
    """The agent may know more than the writer."""
    frontier = heard(echo(10, 0), astray(20, 10, partitions=2))
    assert frontier.until([PLACES[0], ADDED]) == {"n1": 0}


def test_a_partition_below_one_where_canaries_come_is_known() -> None:
    frontier = heard(echo(10, 0), echo(10, 0, partition=3), astray(20, 10, partitions=4))
    assert frontier.until([PLACES[0], ADDED, (TOPIC, 3)]) == {"n1": 0}


def test_a_canary_that_was_written_while_nodes_moved_says_nothing_of_a_new_partition() -> None:
    moved = Echo(Canary("n1", 20, 10, steady=False, at=20), TOPIC, 0, astray=3)
    frontier = heard(echo(10, 0), echo(20, 10), moved)
    assert frontier.until([PLACES[0], ADDED]) == {"n1": 0}


def test_of_two_lanes_of_a_canary_in_one_partition_the_first_counts() -> None:
    """The second is a new lane, which names none before it: a gap must not be hidden by that."""
    for together in (True, False):
        frontier = heard(echo(10, 0))
        echoes = [echo(30, 20), echo(30, 0)]
        for each in [echoes] if together else [[each] for each in echoes]:
            frontier.hear(of_slice(*each), NOW)
        assert frontier.reached() == {LANE: reached(10, NOW)}
        assert len(frontier.hear([], NOW + RULES.lost_after + 1)) == 1


# --- what is lost ---------------------------------------------------------------------------------


def test_one_that_does_not_come_is_lost_after_a_while_and_its_span_is_told_once() -> None:
    frontier = heard(echo(10 * SECOND, 0), echo(30 * SECOND, 20 * SECOND))
    assert frontier.hear([], NOW + RULES.lost_after) == []
    (span,) = frontier.hear([], NOW + RULES.lost_after + 1)
    assert span == Span(LANE, 10 * SECOND, 30 * SECOND, MISSING)
    assert str(span) == f"node n1, {TOPIC}/0: 20 s whose canaries have not come"
    assert frontier.hear([], NOW + 10 * RULES.lost_after) == []
    assert frontier.proven(PLACES[:1]) == {"n1": 20 * SECOND}


def test_a_second_gap_has_its_own_time() -> None:
    frontier = heard(echo(10, 0), echo(30, 20))
    frontier.hear(of_slice(echo(50, 40)), NOW + SECOND)
    assert len(frontier.hear([], NOW + RULES.lost_after + 1)) == 1
    assert frontier.hear([], NOW + 2 * RULES.lost_after) == []
    assert len(frontier.hear([], NOW + 2 * RULES.lost_after + 2)) == 1
    assert frontier.reached() == {LANE: reached(50)}


def test_one_that_comes_in_time_is_not_lost() -> None:
    frontier = heard(echo(10, 0), echo(30, 20))
    assert frontier.hear(of_slice(echo(20, 10)), NOW + RULES.lost_after + 1) == []


def test_a_long_time_without_canaries_is_told_when_the_next_one_comes() -> None:
    pause = RULES.longest_pause
    frontier = heard(echo(SECOND, 0), echo(SECOND + pause, SECOND))
    late = echo(2 * SECOND + 2 * pause, SECOND + pause)
    (span,) = frontier.hear(of_slice(late, late), NOW)
    assert span == Span(LANE, SECOND + pause, 2 * SECOND + 2 * pause, UNWATCHED)


def test_a_node_that_was_away_while_canaries_were_tried_is_no_time_without() -> None:
    pause = RULES.longest_pause
    frontier = heard(echo(SECOND, 0))
    assert frontier.hear(of_slice(echo(9 * pause, SECOND, tried=9 * pause - SECOND)), NOW) == []


def test_one_that_names_none_before_it_ends_a_pause_all_the_same() -> None:
    """Its table was made anew, or its place is another one."""
    pause = RULES.longest_pause
    frontier = heard(echo(SECOND, 0))
    (span,) = frontier.hear(of_slice(echo(SECOND + pause + 1, 0)), NOW)
    assert span == Span(LANE, SECOND, SECOND + pause + 1, UNWATCHED)


def test_after_a_restart_what_was_heard_before_is_gone_on_with() -> None:
    before = heard(echo(10, 0), echo(20, 10))
    after = Frontier(RULES)
    after.begin(before.reached())
    assert after.hear(of_slice(echo(20, 10), echo(40, 30)), NOW) == []
    assert after.reached() == {LANE: reached(20, NOW)}
    assert len(after.hear([], NOW + RULES.lost_after + 1)) == 1


# --- whatever comes how often ---------------------------------------------------------------------


@st.composite
def canaries(draw: st.DrawFn) -> list[Canary]:
    """Of one node: some not acknowledged, of those some not done."""
    made: list[Canary] = []
    acknowledged = 0
    for number in range(1, draw(st.integers(1, 12)) + 1):
        canary = Canary("n1", number, acknowledged, at=number)
        fate = draw(st.sampled_from(["acknowledged", "acknowledged", "done", "not done"]))
        if fate != "not done":
            made.append(canary)
        if fate == "acknowledged":
            acknowledged = number
    return made


def chain_of(echoes: Iterable[Canary]) -> Chain:
    chain = Chain.begun(reached(0))
    for each in echoes:
        chain = chain.after([each.run()], NOW)
    return chain


@given(canaries(), st.randoms(use_true_random=False), st.integers(0, 12))
def test_in_any_order_and_number_the_end_is_the_same(
    made: list[Canary], rng: random.Random, again: int
) -> None:
    several = [*made, *rng.choices(made, k=again)] if made else []
    rng.shuffle(several)
    chain, in_order = chain_of(several), chain_of(made)
    assert (chain.reached, chain.proven) == (in_order.reached, in_order.proven)
    assert chain.ahead == ()


@given(canaries(), st.randoms(use_true_random=False))
def test_nothing_is_proven_while_an_acknowledged_one_before_it_is_missing(
    made: list[Canary], rng: random.Random
) -> None:
    """Whatever some partition has delivered so far: the proof is of what really came."""
    came = [each for each in made if rng.random() < 0.7]
    chain = chain_of(came)
    acknowledged = {each.previous for each in made} - {0}
    numbers = {each.number for each in came}
    missing = [each for each in acknowledged if each not in numbers]
    assert all(chain.proven.number < each for each in missing)
    assert chain.proven.number in {0, *(each.previous for each in came)}


@given(canaries())
def test_a_steady_ring_is_no_condition_of_being_heard(made: list[Canary]) -> None:
    chain = chain_of(replace(each, steady=False) for each in made)
    assert chain.reached == chain_of(made).reached
    assert chain.proven == NONE
