"""Screening: many mailboxes by few reads; what agrees is let go, anything else is suspected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest

from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import NOTHING, UidRange
from reconcilers.words.errors import ReadFailed, Refused, Unreachable
from streaming.counters import screening
from streaming.counters.screening import FEWEST, LARGE, TRIED, Screened, Screening
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


def found(bench: Bench) -> tuple[dict[UUID, set[str]], Counter[str]]:
    """The suspected tallies by mailbox, and how many agree."""
    looked = screened(bench)
    assert looked.left == set()
    return dict(looked.suspected), looked.agree


def test_what_agrees_is_let_go_and_counted_by_its_tally(bench: Bench) -> None:
    assert found(bench) == ({}, OF_BOTH)
    assert bench.tables.read == [WHOLE]


def test_only_chunks_that_changed_are_read(bench: Bench) -> None:
    screened(bench)
    bench.tables.hold(MAILBOX, *bench.tables.listing[MAILBOX], message(99))
    assert screened(bench).suspected == {}
    assert bench.tables.read == []
    bench.tallies.mark({MAILBOX: {9}}, bench.now)
    assert screened(bench).suspected.keys() == {MAILBOX}
    assert bench.tables.read == [(MAILBOX, 90, 99)]


def test_a_chunk_whose_messages_are_gone_is_counted_as_empty(bench: Bench) -> None:
    screened(bench)
    bench.tables.hold(MAILBOX)
    bench.tallies.mark({MAILBOX: {0}}, bench.now)
    assert screened(bench).suspected.keys() == {MAILBOX}
    bench.set_counter(0, 0)
    bench.set_quota(0, 0)
    assert found(bench) == ({}, OF_BOTH)
    assert bench.tables.read == []


def test_a_count_of_before_its_first_whole_count_is_not_added(bench: Bench) -> None:
    bench.tallies.counted({MAILBOX: {7: dict.fromkeys(NOTHING, 5)}}, 5)
    assert screened(bench).suspected == {}
    assert bench.tables.read == [WHOLE]


@pytest.mark.parametrize("counter", [(3, 1), (2, 0), None])
def test_a_counter_that_differs_or_is_missing(
    bench: Bench, counter: tuple[int, int] | None
) -> None:
    if counter is None:
        bench.tables.rows[MAILBOX_COUNTERS.name, MAILBOX] = None
    else:
        bench.set_counter(*counter)
    assert found(bench) == ({MAILBOX: {MAILBOX_COUNTERS.name}}, Counter([CURRENT_QUOTA.name]))


def test_an_empty_mailbox_needs_no_counter(bench: Bench) -> None:
    bench.tables.hold(MAILBOX)
    bench.tables.rows.clear()
    assert screened(bench).suspected == {}


def test_a_quota_of_a_user_with_another_mailbox(bench: Bench) -> None:
    """Its sum is of both, though one of them alone has changed."""
    bench.tables.give(OTHER, BOB)
    bench.tables.hold(OTHER, message(3))
    assert screened(bench).suspected.keys() == {MAILBOX}
    bench.set_quota(count=3, size=300)
    assert found(bench) == ({}, OF_BOTH)


def test_a_mailbox_that_is_in_doubt_is_suspected(bench: Bench) -> None:
    """Its user's paths do not name it."""
    bench.tables.paths[BOB] = set()
    bench.set_quota(count=0, size=0)
    assert screened(bench).suspected.keys() == {MAILBOX}


def test_a_mailbox_that_is_gone_has_no_user(bench: Bench) -> None:
    bench.tables.give(MAILBOX, None)
    assert found(bench) == ({}, Counter([MAILBOX_COUNTERS.name]))


def test_all_mailboxes_of_a_quota_that_differs_are_suspected_and_no_others(bench: Bench) -> None:
    third = UUID(int=OTHER.int + 1)
    bench.tables.give(OTHER, BOB)
    bench.tables.give(third, EVE)
    bench.now += 3600 * SECOND
    bench.set_quota(count=1, size=1)
    assert bench.screening().of([MAILBOX, OTHER, third]).suspected.keys() == {MAILBOX, OTHER}


def test_a_large_mailbox_that_was_never_counted_is_left_to_the_thread(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screening, "LARGE", 2)
    assert screened(bench).suspected == {}
    bench.tables.hold(OTHER, message(1), message(2), message(3))
    assert bench.screening().of([OTHER]).suspected.keys() == {OTHER}
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


FAILURES = [Refused("no grant"), ReadFailed("tombstones"), Unreachable("a time-out")]


class Broken:
    """Reads of some mailboxes fail."""

    def __init__(self, bench: Bench, which: set[UUID], failure: Exception) -> None:
        self._tables, self._which, self._failure = bench.tables, which, failure
        self.reads = 0

    def listed_in(self, mailboxids: Sequence[UUID], uids: UidRange, most: int) -> Any:
        self.reads += 1
        if self._which & {*mailboxids}:
            raise self._failure
        return self._tables.listed_in(mailboxids, uids, most)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)


def broken(bench: Bench, which: set[UUID], failure: Exception) -> tuple[Screening, Broken]:
    """A screening of mailbox counters alone, and its tables."""
    tables, kept = Broken(bench, which, failure), [MAILBOX_COUNTERS]
    return replace(bench.screening(), tables=tables, tallies=kept, rows=5_000), tables


BOXES = [UUID(int=each, version=1) for each in range(10 * FEWEST)]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_mailbox_that_cannot_be_read_is_suspected_and_no_other(
    bench: Bench, failure: Exception
) -> None:
    """Whatever is the matter with it: the thread waits for it alone."""
    screening, _ = broken(bench, {BOXES[7]}, failure)
    found = screening.of(BOXES)
    assert found.suspected == {BOXES[7]: {MAILBOX_COUNTERS.name}}
    assert found.agree == {MAILBOX_COUNTERS.name: len(BOXES) - 1}


@pytest.mark.parametrize("failure", FAILURES[:2])
def test_where_nothing_may_be_read_all_are_suspected(bench: Bench, failure: Exception) -> None:
    screening, _ = broken(bench, {*BOXES}, failure)
    assert screening.of(BOXES).suspected.keys() == {*BOXES}


def test_while_nobody_answers_it_is_soon_given_up(bench: Bench) -> None:
    screening, tables = broken(bench, {*BOXES}, Unreachable("no host answered"))
    with pytest.raises(Unreachable):
        screening.of(BOXES)
    assert tables.reads == 1 + TRIED


@pytest.mark.parametrize("failure", FAILURES[:2])
def test_a_counter_table_that_may_not_be_read_concerns_its_own_tally(
    bench: Bench, failure: Exception
) -> None:
    bench.set_counter(3, 1)
    bench.tables.fails["stored"] = failure
    assert found(bench) == ({MAILBOX: {MAILBOX_COUNTERS.name}}, Counter([CURRENT_QUOTA.name]))


def test_what_there_is_no_time_for_is_left(bench: Bench) -> None:
    looked = bench.screening().of(BOXES, until=0)
    assert looked == Screened(left={*BOXES})


def test_few_rows_are_read_together(bench: Bench) -> None:
    """Those of mailboxes that were never counted may be many."""
    seen = list[int]()
    tables = bench.tables
    screening = replace(bench.screening(), rows=2 * LARGE, tallies=[MAILBOX_COUNTERS])
    listed_in = tables.listed_in

    def counted(mailboxids: Sequence[UUID], uids: UidRange, most: int) -> Any:
        seen.append(len(mailboxids))
        return listed_in(mailboxids, uids, most)

    with patch.object(tables, "listed_in", counted):
        screening.of(BOXES[:20])
    assert seen == [2] * 10
