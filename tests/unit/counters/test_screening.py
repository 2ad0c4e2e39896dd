"""Screening: many mailboxes by few reads; what agrees is let go, anything else is suspected."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import NOTHING
from reconcilers.words.errors import ReadFailed, Refused, Unreachable
from streaming.counters import screening
from streaming.counters.screening import Screened
from tests.builders.counters import BOB, EVE, OTHER, WIDTH, Bench, message
from tests.builders.rows import DELAY, MAILBOX, SECOND

WHOLE = (MAILBOX, 0, 2**63 - 1)
OF_BOTH = Counter([MAILBOX_COUNTERS.name, CURRENT_QUOTA.name])
FIRST = (MAILBOX, 0, WIDTH - 1)


@pytest.fixture
def bench() -> Bench:
    """Mailbox and quota of bob hold two messages, and agree."""
    return Bench()


def screened(bench: Bench) -> Screened:
    bench.tables.read.clear()
    bench.now += 3600 * SECOND
    return bench.screening().of([MAILBOX])


def test_what_agrees_is_let_go_and_counted_by_its_tally(bench: Bench) -> None:
    assert screened(bench) == Screened(set(), OF_BOTH)
    assert bench.tables.read == [WHOLE]


def test_only_chunks_that_changed_are_read(bench: Bench) -> None:
    screened(bench)
    bench.tables.hold(MAILBOX, *bench.tables.listing[MAILBOX], message(99))
    assert screened(bench).suspected == set()
    assert bench.tables.read == []
    bench.tallies.mark({MAILBOX: {9}}, bench.now)
    assert screened(bench).suspected == {MAILBOX}
    assert bench.tables.read == [(MAILBOX, 90, 99)]


def test_a_chunk_whose_messages_are_gone_is_counted_as_empty(bench: Bench) -> None:
    screened(bench)
    bench.tables.hold(MAILBOX)
    bench.tallies.mark({MAILBOX: {0}}, bench.now)
    assert screened(bench).suspected == {MAILBOX}
    bench.set_counter(0, 0)
    bench.set_quota(0, 0)
    assert screened(bench) == Screened(set(), OF_BOTH)
    assert bench.tables.read == []


def test_a_count_of_before_its_first_whole_count_is_not_added(bench: Bench) -> None:
    bench.tallies.counted({MAILBOX: {7: dict.fromkeys(NOTHING, 5)}}, 5)
    assert screened(bench).suspected == set()
    assert bench.tables.read == [WHOLE]


@pytest.mark.parametrize("counter", [(3, 1), (2, 0), None])
def test_a_counter_that_differs_or_is_missing(
    bench: Bench, counter: tuple[int, int] | None
) -> None:
    if counter is None:
        bench.tables.rows[MAILBOX_COUNTERS.name, MAILBOX] = None
    else:
        bench.set_counter(*counter)
    assert screened(bench) == Screened({MAILBOX}, Counter([CURRENT_QUOTA.name]))


def test_an_empty_mailbox_needs_no_counter(bench: Bench) -> None:
    bench.tables.hold(MAILBOX)
    bench.tables.rows.clear()
    assert screened(bench).suspected == set()


def test_a_quota_of_a_user_with_another_mailbox(bench: Bench) -> None:
    """Its sum is of both, though one of them alone has changed."""
    bench.tables.give(OTHER, BOB)
    bench.tables.hold(OTHER, message(3))
    assert screened(bench).suspected == {MAILBOX}
    bench.set_quota(count=3, size=300)
    assert screened(bench) == Screened(set(), OF_BOTH)


def test_a_mailbox_that_is_in_doubt_is_suspected(bench: Bench) -> None:
    """Its user's paths do not name it."""
    bench.tables.paths[BOB] = set()
    bench.set_quota(count=0, size=0)
    assert screened(bench).suspected == {MAILBOX}


def test_a_mailbox_that_is_gone_has_no_user(bench: Bench) -> None:
    bench.tables.give(MAILBOX, None)
    assert screened(bench) == Screened(set(), Counter([MAILBOX_COUNTERS.name]))


def test_all_mailboxes_of_a_quota_that_differs_are_suspected_and_no_others(bench: Bench) -> None:
    third = UUID(int=OTHER.int + 1)
    bench.tables.give(OTHER, BOB)
    bench.tables.give(third, EVE)
    bench.now += 3600 * SECOND
    bench.set_quota(count=1, size=1)
    assert bench.screening().of([MAILBOX, OTHER, third]).suspected == {MAILBOX, OTHER}


def test_a_large_mailbox_that_was_never_counted_is_left_to_the_thread(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screening, "LARGE", 2)
    assert screened(bench).suspected == set()
    bench.tables.hold(OTHER, message(1), message(2), message(3))
    assert bench.screening().of([OTHER]).suspected == {OTHER}
    assert not bench.tallies.of_mailbox(OTHER).whole


def test_a_mark_as_old_as_clocks_may_differ_is_read_again(bench: Bench) -> None:
    screened(bench)
    bench.tallies.mark({MAILBOX: {0}}, bench.now - DELAY // 2)
    for read in ([FIRST], []):
        screened(bench)
        assert bench.tables.read == read


def test_counts_of_before_the_chunks_had_this_width_are_not_used(bench: Bench) -> None:
    screened(bench)
    bench.tables.read.clear()
    replace(bench.screening(), since=bench.now + 1).of([MAILBOX])
    assert bench.tables.read == [WHOLE]


@pytest.mark.parametrize("call", ["stored", "listed", "owner"])
@pytest.mark.parametrize("failure", [Refused("no grant"), ReadFailed("tombstones")])
def test_what_may_not_be_read_makes_all_suspected(
    bench: Bench, call: str, failure: Exception
) -> None:
    """The thread tells which of them it is."""
    bench.tables.fails[call] = failure
    assert bench.screening().of([MAILBOX, OTHER]).suspected == {MAILBOX, OTHER}


def test_while_nobody_answers_nothing_is_known(bench: Bench) -> None:
    bench.tables.fails["stored"] = Unreachable("no host answered")
    with pytest.raises(Unreachable):
        bench.screening().of([MAILBOX])
