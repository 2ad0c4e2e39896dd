"""Three copies: whether a moment is covered although one replica of each range is behind.

The product waits for every node (`lowest`). A quorum of three has two replicas, so a rule was
proposed by which one of them may be behind, or have lost what it logged. The searches here decide
against it: what it needs is shown below, counterexample by counterexample (docs/capture.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.property import copies_histories as made
from tests.property.copies import ONE_RANGE, A, B, C, Layout, ReadRepair, World, one
from tests.property.copies_heard import (
    Claim,
    Margins,
    Rule,
    acknowledged,
    apart,
    cautious,
    joint,
    lowest,
    shown,
    with_one_more,
)
from tests.property.copies_histories import Bet, Claims, Search, Step, never, played
from tests.property.seeded import assert_met

SOUND: Claims = (
    (acknowledged, lowest),
    (shown, lowest),
    (acknowledged, joint),
    (acknowledged, cautious),
    (shown, cautious),
)
"""What no history of agents, read repair, hints and replaced nodes breaks."""
MARGINS = Margins(takes=4)


# --- every history of a few steps, and random ones ------------------------------------------------


def test_every_short_history() -> None:
    search = Search(SOUND)
    assert search.run((made.writes(), 1), (made.agents(), 2)) is None
    assert search.run((made.writes(), 1), (made.agents(), 1), (READ_OR_HINT, 1)) is None
    assert search.tried > 2000


@pytest.mark.long(part="capture")
def test_every_history_of_two_writes_and_three_events_of_agents() -> None:
    search = Search(SOUND)
    assert search.run((made.writes(), 2), (made.agents(), 3)) is None
    assert search.tried > 500_000


@pytest.mark.long(part="capture")
def test_every_history_of_a_write_that_is_spread_and_read() -> None:
    search = Search(SOUND)
    assert search.run((made.writes(), 1), (made.agents(), 2), (READ_OR_HINT, 2)) is None
    assert search.tried > 100_000


def test_random_histories() -> None:
    assert not Bet(SOUND).first(range(1000))


@pytest.mark.long(part="capture")
def test_a_hundred_thousand_random_histories() -> None:
    assert not Bet(SOUND).first(range(100_000))


READ_OR_HINT = (*made.reads(), *made.hints())


def test_a_quorum_knows_more_than_the_lowest_node() -> None:
    """Or the searches say nothing."""
    met = Counter[object]()
    for seed in range(300):
        by_all, by_joint, by_cautious = made.lengths(seed, lowest, joint, cautious)
        met["joint"] += by_joint > by_all
        met["cautious"] += by_cautious > by_all
    assert_met(met, {"joint": 100, "cautious": 50})


@pytest.mark.parametrize("rule", [joint, cautious])
@pytest.mark.parametrize("claim", [acknowledged, shown])
def test_a_rule_with_one_replica_more_is_noticed(rule: Rule, claim: Claim) -> None:
    wrong: Claims = ((claim, with_one_more(rule)),)
    assert Bet(wrong).first(range(1000))
    reads = (made.reads(), int(claim is shown))
    assert Search(wrong).run((made.writes(), 1), (made.agents(), 2), reads) is not None


def test_a_rule_of_the_lowest_node_but_one_is_noticed_with_one_copy() -> None:
    """With one copy of each row, a quorum is that copy: every node counts."""
    layout = Layout(((A,), (B,), (C,)), bool)
    assert not Bet(SOUND[:3], acts=NO_DISKS, layouts=(layout,)).first(range(300))
    wrong: Claims = ((acknowledged, with_one_more(joint)),)
    assert Bet(wrong, acts=NO_DISKS, layouts=(layout,)).first(range(300))


NO_DISKS = (made.a_write, made.an_agent)


# --- what is wrong with each rule -----------------------------------------------------------------


def test_a_span_lost_on_one_and_another_behind() -> None:
    """Neither are two behind, nor do two spans overlap: the two rules are not to be apart."""
    world = played(
        ONE_RANGE,
        lambda world: world.stop(B),
        lambda world: world.write(0, {A: 0, B: 0}),
        lambda world: world.skip(A),
        lambda world: world.go_on(A),
    )
    assert acknowledged(world, apart, MARGINS)
    for rule in (lowest, joint, cautious):
        assert not acknowledged(world, rule, MARGINS)


def test_spans_that_do_not_overlap_lose_a_write() -> None:
    """Two replicas log it at different times: each span is as much longer as a write takes."""
    world = played(
        ONE_RANGE,
        lambda world: world.write(0, {A: 0, B: 4}),
        lambda world: world.skip(A),
        lambda world: world.go_on(A),
        lambda world: None,
        lambda world: world.skip(B),
        lambda world: world.go_on(B),
    )
    (first,), (second,) = world.nodes[A].lost, world.nodes[B].lost
    assert first[1] <= second[0]
    assert acknowledged(world, apart, MARGINS)
    for rule in (lowest, joint, cautious):
        assert not acknowledged(world, rule, MARGINS)


def unanswered(world: World) -> None:
    """One replica has logged it; its user was told that it failed."""
    world.write(0, {C: 0}, never)


def spread(*steps: Step) -> World:
    """Such a write, while the agent of that replica is dead; what follows spreads it."""
    return played(ONE_RANGE, lambda world: world.stop(C), unanswered, *steps)


def test_a_read_repair_is_an_event_of_the_other_replica() -> None:
    """It has the time of the write, and is logged later: before the read is answered."""
    world = spread(lambda world: world.read(0, [A, C]))
    assert world.writes[0].shown == 3
    assert world.heard == {0}
    for rule in (lowest, joint, cautious):
        assert not shown(world, rule, MARGINS)


def read_without_repair(world: World) -> None:
    world.read(0, [A, C], ReadRepair.NONE)


def repaired_and_read(world: World) -> None:
    world.repair(0)
    world.read(0, [A, B])


@pytest.mark.parametrize("step", [read_without_repair, repaired_and_read])
def test_a_write_that_is_spread_past_the_log_is_in_one_log_only(step: Step) -> None:
    """`read_repair = 'NONE'`, or `nodetool repair` as it has to be set: one replica is behind."""
    world = spread(step)
    assert not world.heard
    for rule in (joint, cautious):
        assert shown(world, rule, MARGINS)
    assert not shown(world, lowest, MARGINS)


def test_a_repair_that_is_logged_is_an_event_of_every_replica() -> None:
    bet = Bet(SOUND, acts=(*made.USUAL, made.a_logged_repair))
    assert not bet.first(range(300))


@pytest.mark.parametrize("how", ["read repair", "streaming"])
def test_two_spans_however_far_apart_lose_what_was_spread(how: str) -> None:
    """To a replica that lost the span of the read, or has had its disks replaced."""
    spans: tuple[Step, ...] = (
        lambda world: world.read(0, [A, C]),
        lambda world: world.skip(A),
        lambda world: world.go_on(A),
    )
    streamed: tuple[Step, ...] = (
        lambda world: world.replace(A, {0: C}),
        *[lambda world: None] * 5,
        lambda world: world.read(0, [A, C]),
    )
    world = played(
        ONE_RANGE,
        unanswered,
        lambda world: world.skip(C),
        lambda world: world.go_on(C),
        *[lambda world: None] * 20,
        *(spans if how == "read repair" else streamed),
    )
    assert not world.heard
    assert shown(world, joint, MARGINS)
    for rule in (lowest, cautious):  # what was begun before a span is not claimed
        assert not shown(world, rule, MARGINS)


def test_a_weak_write_is_in_one_log() -> None:
    """One that is acknowledged below a quorum."""
    world = played(
        ONE_RANGE, lambda world: world.stop(C), lambda world: world.write(0, {C: 0}, one)
    )
    for rule in (joint, cautious):
        assert acknowledged(world, rule, MARGINS)
    assert not acknowledged(world, lowest, MARGINS)


def test_a_log_that_lost_its_end_in_a_crash_shows_no_gap() -> None:
    """A commit log is synced each second; what was acknowledged since goes with the machine."""
    world = played(
        ONE_RANGE,
        lambda world: world.stop(B),
        lambda world: world.write(0, {A: 0, B: 0}),
        lambda world: world.crash(A),
    )
    assert world.nodes[B].holds == {0}
    assert not world.nodes[A].lost
    for rule in (joint, cautious):
        assert acknowledged(world, rule, MARGINS)
    assert not acknowledged(world, lowest, MARGINS)


@pytest.mark.parametrize(
    ("act", "claim"), [(made.a_repair, shown), (made.a_crash_of_one, acknowledged)]
)
def test_random_histories_find_these_and_none_for_the_lowest_node(
    act: Callable[..., None], claim: Claim
) -> None:
    acts = (*made.USUAL, act, act)
    for rule in (joint, cautious):
        assert Bet(((claim, rule),), acts, (ONE_RANGE,)).first(range(3000)), rule
    assert not Bet(SOUND[:2], acts, (ONE_RANGE,)).first(range(500))
