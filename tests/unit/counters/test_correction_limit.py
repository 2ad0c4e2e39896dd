"""Every correction has its limit, of roots and of mailboxes, in whatever round it comes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.counters.correction_limit import above_limit
from reconcilers.declared.tally import Sum
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Kind
from streaming.counters.correct import Conclusion
from streaming.counters.counter_row import CounterRow
from tests.builders.counters import AGAIN, OF_BOB, OF_MAILBOX, Bench, K
from tests.builders.rows import MAILBOX

LIMIT = 100


def with_wrong(bench: Bench, row: CounterRow, count: int) -> Bench:
    if row is OF_BOB:
        return bench.with_wrong_quota(count)
    return bench.with_wrong_counter(count)


def held(bench: Bench, row: CounterRow) -> Finding:
    found = bench.open_finding(row)
    assert (found.kind, found.state) == (Kind.LARGE_CORRECTION, State.HELD)
    assert not found.accepted
    return found


def count_of(bench: Bench, row: CounterRow) -> Any:
    return (bench.tables.rows[row.tally.name, row.key] or {})[Sum.COUNT]


def accept(bench: Bench) -> None:
    bench.journal.accept(accepted(held(bench, OF_BOB), bench.now))
    bench.recall()
    bench.expect(OF_BOB)


@pytest.fixture
def large() -> Bench:
    """A quota's error above the limit, which is held."""
    bench = Bench().with_wrong_quota(count=200)
    bench.look(K)
    held(bench, OF_BOB)
    return bench


@pytest.mark.parametrize("row", [OF_MAILBOX, OF_BOB], ids=str)
@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_every_correction_above_the_limit_waits_for_a_person_whatever_its_round(
    row: CounterRow, rounds: int
) -> None:
    bench = Bench()
    for _ in range(rounds):
        with_wrong(bench, row, 3).look(K + 1)
    assert len(bench.tables.added) == rounds
    with_wrong(bench, row, 2 + LIMIT + 1).look(2 * K)
    assert "a person decides on an error above 100 of count" in held(bench, row).told
    assert len(bench.tables.added) == rounds


@pytest.mark.parametrize("row", [OF_MAILBOX, OF_BOB], ids=str)
def test_a_large_error_does_not_go_in_small_rounds(row: CounterRow) -> None:
    """While users write, only a part of an error is proven, again and again."""
    bench = with_wrong(Bench(), row, 1_000)
    for number in range(6):
        looked = Conclusion(frozenset({MAILBOX}), number, {Sum.COUNT: 60})
        bench.correcting.correct(row, looked, None)
    held(bench, row)
    assert bench.tables.added == []


def test_the_unseen_ones_have_a_limit_too() -> None:
    bench = Bench().with_wrong_counter(count=2, unseen=1 - LIMIT - 1)
    bench.look(K)
    assert "above 100 of unseen" in held(bench, OF_MAILBOX).told


def test_what_is_accepted_is_carried_out_and_the_next_one_waits_again() -> None:
    bench = Bench()
    for count in (200, 300):
        bench.with_wrong_quota(count).look(K)
        accept(bench)
        bench.look(K + 1)
        assert count_of(bench, OF_BOB) == 2
        assert bench.finding(OF_BOB) is None


@pytest.mark.parametrize("now", [2 + 198 + LIMIT + 1, 2 - LIMIT - 1])
def test_what_is_accepted_is_not_an_error_that_has_grown_or_turned(large: Bench, now: int) -> None:
    accept(large)
    large.set_quota(count=now, size=200)
    before = len(large.told)
    large.look(K)
    assert not held(large, OF_BOB).accepted
    assert large.states()[before:] == [State.SUPERSEDED, State.HELD]
    assert large.tables.added == []


def test_after_an_accepted_correction_another_error_waits_for_a_person_again(large: Bench) -> None:
    """Its finding is still open then, and was accepted."""
    accept(large)
    large.look(K)
    large.set_quota(count=150, size=200)
    large.look(K)
    held(large, OF_BOB)
    assert len(large.tables.added) == 1


def test_one_that_is_small_by_now_is_corrected(large: Bench) -> None:
    large.now += AGAIN
    large.with_wrong_quota(count=5).look(K + 1)
    assert count_of(large, OF_BOB) == 2


# --- the rule -------------------------------------------------------------------------------------

NUMBERS = st.integers(-(10**6), 10**6)


@given(NUMBERS, st.integers(0, 1000))
def test_without_a_person_nothing_above_the_limit(drift: int, limit: int) -> None:
    found = above_limit([Sum.SIZE], {Sum.SIZE: drift}, {Sum.SIZE: limit}, {})
    assert bool(found) == (abs(drift) > limit)


@given(NUMBERS, NUMBERS, st.integers(0, 1000))
def test_with_a_person_no_more_than_the_limit_beyond_what_was_shown(
    drift: int, agreed: int, limit: int
) -> None:
    shown = {Sum.SIZE: agreed}
    found = above_limit([Sum.SIZE], {Sum.SIZE: drift}, {Sum.SIZE: limit}, shown)
    if not found and abs(drift) > limit:
        assert (drift > 0) == (agreed > 0)
        assert abs(drift) <= abs(agreed) + limit


def test_a_sum_without_a_limit_is_always_above_it() -> None:
    assert above_limit([Sum.COUNT, Sum.SIZE], {Sum.COUNT: 1, Sum.SIZE: 0}, {}, {}) == [Sum.COUNT]
