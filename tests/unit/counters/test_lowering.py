"""Lowering a counter needs whole memory of its mailboxes; raising it does not (review A2)."""

from __future__ import annotations

import pytest

from reconcilers.counters.drift import LIST_MAY_LACK_ROWS, raising
from reconcilers.declared.tally import Sum
from reconcilers.rows.finding import State
from reconcilers.words.model import Kind, Micros
from tests.builders.counters import OF_BOB, OF_MAILBOX, OTHER, Bench, K, message
from tests.builders.rows import DELAY, LONG_AGO, MAILBOX, NOW
from tests.property.mail import time_uuid


@pytest.fixture
def old() -> Bench:
    """Three messages, long ago, all counted; the row of one was lost, and nobody remembers it."""
    bench = Bench()
    lost = message(3)
    bench.tables.set_truth(lost)
    bench.set_counter(count=3, unseen=2)
    bench.set_quota(count=3, size=300)
    bench.lineage.watch_from(LONG_AGO)
    bench.expect(OF_MAILBOX, OF_BOB)
    return bench


def test_a_counter_that_counts_what_the_list_lacks_is_not_lowered(old: Bench) -> None:
    old.look(3 * K)
    assert old.tables.added == []
    for subject in (OF_MAILBOX, OF_BOB):
        found = old.open_finding(subject)
        assert (found.kind, found.state) == (Kind.COUNTER_DRIFT, State.HELD)
        assert found.waits == LIST_MAY_LACK_ROWS
    assert "count 3 should be 2" in old.open_finding().sentence


def test_it_is_told_once(old: Bench) -> None:
    old.look(K)
    for _ in range(3):
        old.expect(OF_MAILBOX)
        old.look(K)
    assert [each.state for each, _ in old.told].count(State.HELD) == 2  # mailbox and quota


def test_after_a_sweep_it_is_settled(old: Bench) -> None:
    old.look(K)
    old.tables.truths.pop(message(3).messageid)  # its counter was never written
    old.lineage.mark_swept(old.now, LONG_AGO)
    old.expect(OF_MAILBOX)
    old.look(2 * K)
    assert old.counter() == (2, 1)
    assert old.finding() is None


def test_after_a_sweep_that_found_the_row_nothing_is_added(old: Bench) -> None:
    old.look(K)
    old.lineage.mark_swept(old.now, LONG_AGO)
    old.tables.hold(MAILBOX, message(1), message(2, seen=True), message(3))
    old.come({MAILBOX: 1})
    old.tallies.mark({MAILBOX: {0}}, old.now)
    old.expect(OF_MAILBOX)
    old.look(2 * K)
    assert old.tables.added == []
    assert old.finding() is None


@pytest.mark.parametrize("watched", [True, False], ids=["memory began anew", "nobody watches"])
def test_a_mark_from_before_memory_ended_does_not_count(old: Bench, watched: bool) -> None:
    old.lineage.mark_swept(old.now, LONG_AGO)
    if watched:
        old.lineage.watch_from(old.now + 1)
    else:
        old.lineage.stop_watching()
    old.look(K)
    assert old.tables.added == []


def test_a_counter_that_is_too_low_is_raised(old: Bench) -> None:
    old.set_counter(count=1, unseen=0)
    old.look(K)
    assert old.counter() == (2, 1)


def test_of_two_sums_the_one_that_is_too_low_is_raised_and_the_other_held(old: Bench) -> None:
    old.set_counter(count=3, unseen=0)
    old.look(K)
    assert [each.deltas for each in old.tables.added] == [{Sum.UNSEEN: 1}]
    old.look(2 * K)
    assert old.counter() == (3, 1)
    assert old.open_finding().waits == LIST_MAY_LACK_ROWS


@pytest.mark.parametrize("born", [LONG_AGO - DELAY, LONG_AGO + DELAY // 2])
def test_a_mailbox_that_was_made_before_we_watched_is_not_whole(born: Micros) -> None:
    bench = Bench()
    bench.lineage.watch_from(LONG_AGO)
    assert not bench.sides.are_whole([time_uuid(born, 1)])


def test_a_mailbox_that_was_made_while_we_watched_is_whole() -> None:
    bench, mailbox = Bench(), time_uuid(LONG_AGO + DELAY // 2 + 1, 1)
    bench.lineage.watch_from(LONG_AGO)
    assert bench.sides.are_whole([mailbox])
    assert not bench.sides.are_whole([mailbox, OTHER])


def test_an_observer_says_why_it_would_be_held() -> None:
    bench = Bench(observe=True).with_wrong_counter()
    bench.lineage.watch_from(NOW)
    bench.look(K)
    found = bench.open_finding()
    assert found.state is State.OBSERVED
    assert found.told.endswith(f"would be held: {LIST_MAY_LACK_ROWS}")


def test_only_what_adds_is_raising() -> None:
    assert raising({Sum.COUNT: -1, Sum.UNSEEN: 2}) == {Sum.UNSEEN: 2}
