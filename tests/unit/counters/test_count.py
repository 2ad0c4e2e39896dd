"""Counting by chunks reads only what has changed; counting whole asks the truth of each message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.declared.tally import NOTHING, Listed, Sum, Sums, by_chunk, summed, total
from reconcilers.words.errors import Deferred
from streaming.counters.count import IDS_A_READ
from tests.builders.counters import BOB, OTHER, WIDTH, Bench, message, truth_of
from tests.builders.rows import DELAY, MAILBOX, SECOND

WHOLE = (MAILBOX, 0, 2**63 - 1)
OLD = 3600 * SECOND


@pytest.fixture
def bench() -> Bench:
    """Messages in three chunks."""
    made = Bench()
    made.tables.hold(MAILBOX, message(1), message(12), message(13, seen=True), message(25))
    return made


def sums(count: int, unseen: int, size: int) -> Sums:
    return {Sum.COUNT: count, Sum.UNSEEN: unseen, Sum.SIZE: size}


def counted(bench: Bench) -> Sums:
    bench.tables.read.clear()
    bench.now += OLD
    return bench.counting().sums([MAILBOX])


# --- by chunks ------------------------------------------------------------------------------------


def test_a_mailbox_is_counted_whole_the_first_time_and_not_read_again(bench: Bench) -> None:
    assert counted(bench) == sums(4, 3, 400)
    assert bench.tables.read == [WHOLE]
    assert counted(bench) == sums(4, 3, 400)
    assert bench.tables.read == []


def test_only_a_chunk_that_changed_is_read(bench: Bench) -> None:
    counted(bench)
    bench.tables.hold(MAILBOX, message(1), message(12, seen=True), message(25))
    bench.tallies.mark({MAILBOX: {1}}, bench.now)
    assert counted(bench) == sums(3, 2, 300)
    assert bench.tables.read == [(MAILBOX, WIDTH, 2 * WIDTH - 1)]
    counted(bench)
    assert bench.tables.read == []


def test_a_chunk_that_is_new_is_counted_when_it_is_marked(bench: Bench) -> None:
    counted(bench)
    bench.tables.hold(MAILBOX, *bench.tables.listing[MAILBOX], message(99))
    assert counted(bench) == sums(4, 3, 400)
    bench.tallies.mark({MAILBOX: {9}}, bench.now)
    assert counted(bench) == sums(5, 4, 500)


def test_a_mailbox_whose_first_change_comes_before_its_first_count_is_counted_whole(
    bench: Bench,
) -> None:
    bench.tallies.mark({MAILBOX: {1}}, bench.now)
    assert counted(bench) == sums(4, 3, 400)


def test_a_chunk_counted_less_than_the_clocks_may_differ_after_its_mark_is_counted_again(
    bench: Bench,
) -> None:
    counted(bench)
    bench.tallies.mark({MAILBOX: {0}}, bench.now)
    for later, read in ((DELAY // 2, 1), (1, 1), (DELAY, 0)):
        bench.tables.read.clear()
        bench.now += later
        bench.counting().sums([MAILBOX])
        assert len(bench.tables.read) == read


def test_a_mark_that_comes_while_a_chunk_is_counted_is_not_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted(bench)
    bench.tallies.mark({MAILBOX: {0}}, bench.now)
    listed = bench.tables.listed

    def slowly(mailboxid: UUID, first: int, last: int) -> Iterator[Listed]:
        yield from listed(mailboxid, first, last)
        bench.now += SECOND
        bench.tallies.mark({MAILBOX: {0}}, bench.now)
        bench.now += DELAY

    with monkeypatch.context() as slow:
        slow.setattr(bench.tables, "listed", slowly)
        counted(bench)
    counted(bench)
    assert bench.tables.read == [(MAILBOX, 0, WIDTH - 1)]


def test_several_mailboxes_are_summed_up(bench: Bench) -> None:
    bench.tables.give(OTHER, BOB)
    bench.tables.hold(OTHER, message(40, size=7))
    assert bench.counting().sums([MAILBOX, OTHER]) == sums(5, 4, 407)


def test_no_mailbox_holds_nothing(bench: Bench) -> None:
    assert bench.counting().sums([]) == NOTHING


# --- against the truth ----------------------------------------------------------------------------


def test_a_recount_that_agrees_with_the_truth_replaces_what_chunks_were_counted_to(
    bench: Bench,
) -> None:
    counted(bench)
    bench.tables.hold(MAILBOX, message(1))
    assert counted(bench) == sums(4, 3, 400)
    assert bench.recounted(MAILBOX) == sums(1, 1, 100)
    assert counted(bench) == sums(1, 1, 100)
    assert bench.tables.read == []


@pytest.mark.parametrize("cells", [{}, {"modseq": None}], ids=["whole", "incomplete"])
def test_rows_of_other_mailboxes_do_not_count(bench: Bench, cells: dict[str, None]) -> None:
    each = message(1)
    bench.tables.truths[each.messageid].append(truth_of(OTHER, each, **cells))
    assert bench.recounted(MAILBOX) == sums(4, 3, 400)


def test_a_message_that_only_lineage_knows_is_asked_for(bench: Bench) -> None:
    lost = message(3)
    bench.tables.set_truth(lost)
    bench.remember(MAILBOX, lost)
    with pytest.raises(Deferred, match=r"1 messages of mailbox .* differ"):
        bench.recounted(MAILBOX)


def test_a_message_that_lineage_remembers_and_nobody_has_any_more_is_none(bench: Bench) -> None:
    bench.remember(MAILBOX, message(3))
    assert bench.recounted(MAILBOX) == sums(4, 3, 400)


@pytest.mark.parametrize(
    "cells", [None, {"flagseen": True}, {"fullcontentoctets": 5}, {"uid": 2}], ids=str
)
def test_a_message_that_the_truth_lacks_or_has_otherwise_defers_its_mailbox(
    bench: Bench, cells: dict[str, int] | None
) -> None:
    if cells is None:
        del bench.tables.truths[message(1).messageid]
    else:
        bench.tables.set_truth(message(1), **cells)
    with pytest.raises(Deferred, match="differ"):
        bench.recounted(MAILBOX)


def test_a_difference_in_one_of_a_users_mailboxes_defers_them_all(bench: Bench) -> None:
    bench.tables.listing[OTHER] = [message(40)]
    with pytest.raises(Deferred, match=str(OTHER)):
        bench.recounted(MAILBOX, OTHER)


def test_a_seen_flag_that_is_null_means_unseen(bench: Bench) -> None:
    bench.tables.set_truth(message(1), flagseen=None)
    assert bench.recounted(MAILBOX) == sums(4, 3, 400)


def test_more_messages_than_one_read_asks_for_are_all_counted(bench: Bench) -> None:
    many = [message(uid) for uid in range(1, IDS_A_READ + 2)]
    bench.tables.hold(MAILBOX, *many)
    assert bench.recounted(MAILBOX)[Sum.COUNT] == IDS_A_READ + 1


def test_a_message_listed_twice_under_two_uids_is_two(bench: Bench) -> None:
    first, copy = message(1), replace(message(1), uid=2)
    bench.tables.hold(MAILBOX, first, copy)
    bench.tables.truths[first.messageid] = [truth_of(MAILBOX, each) for each in (first, copy)]
    assert bench.recounted(MAILBOX) == sums(2, 2, 200)


# --- sums -----------------------------------------------------------------------------------------


def test_chunks_sum_up_to_the_whole() -> None:
    messages = [message(uid, seen=uid % 3 == 0, size=uid) for uid in range(1, 100)]
    chunks = by_chunk(messages, WIDTH)
    assert total(list(chunks.values())) == summed(messages)
    assert chunks.keys() == set(range(10))
