"""Quota roots by their own timing: judged when both sides have stood still for long enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.counters.drift import Observation
from reconcilers.counters.stillness import GRAIN, MOST_GRAINS, Stillness, stillness_after
from reconcilers.declared.tally import Sum
from reconcilers.words.model import Micros
from tests.builders.counters import BOB, GATHER, OF_BOB, OF_MAILBOX, OTHER, Bench, K, message
from tests.builders.rows import MAILBOX, NOW, SECOND

LAG: Micros = 600 * SECOND
STANDS = 6
"""So many looks of `Bench.look` last longer than the lag."""


@pytest.fixture
def bench() -> Bench:
    """Its quota is wrong."""
    return Bench(root_lag=LAG).with_wrong_quota()


def test_a_quota_is_corrected_when_it_has_stood_still_for_the_lag_and_k_looks(bench: Bench) -> None:
    bench.look(STANDS + K - 2)
    assert bench.tables.added == []
    bench.look(2)
    assert [each.deltas for each in bench.tables.added] == [{Sum.COUNT: -1}]


def test_a_quota_that_is_written_within_the_lag_is_right(bench: Bench) -> None:
    """The listener is behind: its update comes after many looks."""
    bench.look(STANDS - 1)
    bench.set_quota(count=2, size=200)
    bench.look(2 * STANDS)
    assert bench.tables.added == []
    assert bench.finding(OF_BOB) is None


def test_when_the_counter_moves_the_time_begins_anew(bench: Bench) -> None:
    for count in (4, 5, 6, 7):
        bench.look(STANDS - 1)
        bench.set_quota(count=count, size=200)
    assert bench.tables.added == []


def test_when_what_it_should_be_moves_the_time_begins_anew(bench: Bench) -> None:
    bench.tables.give(OTHER, BOB)
    bench.look(STANDS - 1)
    bench.tables.hold(OTHER, message(40, size=7))
    bench.tallies.mark({OTHER: {4}}, bench.now)
    bench.look(STANDS - 1)
    assert bench.tables.added == []


def test_changes_within_the_lag_count_as_under_way_though_nothing_moves(bench: Bench) -> None:
    """As a message that comes and one that goes, both still in the queue."""
    for _ in range(3 * STANDS):
        bench.look(changes={MAILBOX: 1})
    assert bench.tables.added == []


def test_a_mailbox_waits_for_nothing_of_that() -> None:
    bench = Bench(root_lag=LAG).with_wrong_counter()
    bench.look(K)
    assert bench.counter() == (2, 1)


def test_a_root_is_looked_at_when_what_has_just_changed_may_be_there() -> None:
    bench = Bench(root_lag=LAG)
    bench.watch.changed([OF_MAILBOX, OF_BOB])
    bench.now += GATHER
    assert [each.counter for each in bench.watch.ready()] == [OF_MAILBOX]
    bench.watch.changed([OF_BOB])
    bench.now += LAG - 1
    assert [each.counter for each in bench.watch.ready()] == [OF_MAILBOX]
    bench.now += 1
    assert len(bench.watch.ready()) == 2


def test_the_looks_at_a_root_are_a_part_of_the_lag_apart(bench: Bench) -> None:
    began = bench.now
    bench.work()
    bench.come()
    bench.work()
    bench.now = began + LAG // 6 - 1
    assert bench.watch.ready() == []
    bench.now = began + LAG // 6
    assert len(bench.watch.ready()) == 1


# --- the rule -------------------------------------------------------------------------------------


def seen(at: Micros, stored: int, expected: int) -> Observation:
    sums = {Sum.COUNT: expected, Sum.UNSEEN: at % 7, Sum.SIZE: 9}
    return Observation(at, 0, {Sum.COUNT: stored, Sum.SIZE: 9}, sums)


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(0, 1), st.integers(0, 1)), min_size=1))
def test_it_lasts_since_the_first_of_the_last_looks_that_agree(
    looks: list[tuple[int, int, int]],
) -> None:
    """What the row does not hold (here: the unseen ones) may move."""
    at, still, since, last = NOW, None, NOW, None
    for pause, stored, expected in looks:
        at += pause
        if (stored, expected) != last:
            since, last = at, (stored, expected)
        still = stillness_after(seen(at, stored, expected), still)
        assert still.since == since
        assert still.lasts(at, at - since)
        assert not still.lasts(at, at - since + 1)


@given(st.lists(st.tuples(st.integers(0, 3 * GRAIN), st.integers(1, 9)), max_size=30), st.data())
def test_no_change_is_forgotten(came: list[tuple[int, int]], data: st.DataObject) -> None:
    still, now, heard = Stillness(NOW, {}, {}), NOW, []
    for pause, number in came:
        now += pause
        heard.append((now, number))
        still = still.heard(number, now)
    since = data.draw(st.integers(NOW - 1, now + GRAIN))
    told = still.changes_since(since)
    assert told >= sum(number for at, number in heard if at > since)
    assert told <= sum(number for at, number in heard if at > since - 2 * GRAIN)


def test_what_is_kept_of_changes_is_bounded_and_errs_to_the_safe_side() -> None:
    still = Stillness(NOW, {}, {})
    for number in range(3 * MOST_GRAINS):
        still = still.heard(1, NOW + number * GRAIN)
    assert len(still.came) == MOST_GRAINS
    assert still.changes_since(NOW) == 3 * MOST_GRAINS
