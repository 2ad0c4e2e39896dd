"""Very large mailboxes are counted range by range of UIDs; others have their turn in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.declared.tally import Listed, Sum
from reconcilers.words.errors import Deferred, Unfinished, Unreachable
from streaming.counters import count, recount
from streaming.counters.recount import Recount
from tests.builders.counters import (
    GATHER,
    OF_BOB,
    OF_MAILBOX,
    OTHER,
    Bench,
    K,
    message,
    truth_of,
)
from tests.builders.failing import unreachable
from tests.builders.rows import DELAY, MAILBOX

ROWS = 10
MESSAGES = 95


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "ROWS_A_RANGE", ROWS)
    monkeypatch.setattr(recount, "ROWS_A_RANGE", ROWS)


@pytest.fixture
def bench() -> Bench:
    """A mailbox of many ranges; its counter is right."""
    made = Bench()
    made.tables.hold(MAILBOX, *(message(3 * uid) for uid in range(1, MESSAGES + 1)))
    made.set_counter(count=MESSAGES, unseen=MESSAGES)
    return made


def all_of(made: Recount) -> Recount:
    while made.left:
        made.step()
    return made


def test_the_ranges_sum_up_to_the_whole_and_no_more_than_one_is_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    listed = bench.tables.listed

    def counted(*asked: int) -> Iterator[Listed]:
        read.append(0)
        for each in listed(*asked):  # type: ignore[arg-type]
            read[-1] += 1
            yield each

    monkeypatch.setattr(bench.tables, "listed", counted)
    assert bench.recounted(MAILBOX)[Sum.COUNT] == MESSAGES
    assert max(read) == ROWS
    book = bench.tallies.of_mailbox(MAILBOX)
    assert book.whole
    assert sum(each.sums[Sum.COUNT] for each in book.chunks.values() if each.sums) == MESSAGES


def test_a_step_counts_several_small_mailboxes(bench: Bench) -> None:
    bench.tables.hold(MAILBOX, message(1), message(2))
    bench.tables.hold(OTHER, message(8), message(9))
    both = Recount(bench.counting(), [MAILBOX, OTHER])
    both.step()
    assert not both.left
    assert both.sums[Sum.COUNT] == 4


def test_after_an_error_it_goes_on_where_it_was(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Recount(bench.counting(), [MAILBOX])
    made.step()
    made.step()
    bench.tables.read.clear()
    bench.tables.fails["listed"] = Unreachable("no host answered")
    with pytest.raises(Unreachable):
        made.step()
    with monkeypatch.context() as broken:
        while made._first < 200:
            made.step()
        broken.setattr(bench.tallies, "counted_whole", unreachable)
        with pytest.raises(Unreachable):
            all_of(made)
    assert all_of(made).sums[Sum.COUNT] == MESSAGES
    assert min(first for _, first, _ in bench.tables.read) > ROWS


def test_messages_that_only_lineage_knows_have_ranges_too(bench: Bench) -> None:
    gone = [message(3 * uid + 1) for uid in range(1, 4 * MESSAGES)]
    bench.remember(MAILBOX, *gone)
    assert bench.recounted(MAILBOX)[Sum.COUNT] == MESSAGES
    lost = gone[-1]
    bench.tables.set_truth(lost)
    with pytest.raises(Deferred, match=f"UID {lost.uid} among them"):
        bench.recounted(MAILBOX)


def test_more_sources_at_one_uid_than_a_range_has_rows_do_not_stop_it(bench: Bench) -> None:
    claims = [replace(message(6), messageid=UUID(int=n, version=1)) for n in range(700, 730)]
    bench.remember(MAILBOX, *claims)
    assert bench.recounted(MAILBOX)[Sum.COUNT] == MESSAGES


@pytest.mark.parametrize("uid", [2, 200, 9_000])
def test_a_truth_row_in_another_range_that_nobody_lists_is_a_difference(
    bench: Bench, uid: int
) -> None:
    """The message is listed in a range of its own; its second row is not."""
    for each in (message(150), message(3), message(285)):
        bench.tables.truths[each.messageid] = [
            truth_of(MAILBOX, each),
            truth_of(MAILBOX, replace(each, uid=uid)),
        ]
        with pytest.raises(Deferred, match=f"UID {uid} among them"):
            bench.recounted(MAILBOX)
        bench.tables.set_truth(each)


def test_a_copy_in_another_range_counts_twice(bench: Bench) -> None:
    first, copy = message(3), replace(message(3), uid=9_000)
    bench.tables.listing[MAILBOX].append(copy)
    bench.tables.truths[first.messageid] = [truth_of(MAILBOX, each) for each in (first, copy)]
    assert bench.recounted(MAILBOX)[Sum.COUNT] == MESSAGES + 1


# --- a first count --------------------------------------------------------------------------------


def test_a_first_count_takes_several_turns_and_reads_nothing_twice(bench: Bench) -> None:
    counting = bench.counting()
    for _ in range(MESSAGES // ROWS):
        with pytest.raises(Unfinished):
            counting.sums([MAILBOX])
    assert counting.sums([MAILBOX])[Sum.COUNT] == MESSAGES
    firsts = [first for _, first, _ in bench.tables.read]
    assert firsts == sorted(set(firsts))
    assert bench.tallies.of_mailbox(MAILBOX).whole


def test_a_chunk_that_is_marked_while_it_takes_its_turns_is_counted_again(bench: Bench) -> None:
    counting = bench.counting()
    with pytest.raises(Unfinished):
        counting.sums([MAILBOX])
    bench.now += DELAY
    bench.tables.hold(MAILBOX, *bench.tables.listing[MAILBOX][1:])
    bench.tallies.mark({MAILBOX: [0]}, bench.now)
    bench.now += DELAY
    for _ in range(MESSAGES // ROWS - 1):
        with pytest.raises(Unfinished):
            counting.sums([MAILBOX])
    counting.sums([MAILBOX])
    assert counting.sums([MAILBOX])[Sum.COUNT] == MESSAGES - 1


# --- in the scheduler -----------------------------------------------------------------------------


def until_counted(bench: Bench) -> int:
    """Work until nothing is due; how many turns that took."""
    for turn in range(100):
        if not bench.watch.ready():
            return turn
        bench.work()
    raise AssertionError("it never ends")


@pytest.fixture
def wrong(bench: Bench) -> Bench:
    """Two looks have shown that the counter is one too high; the third counts everything."""
    bench.with_wrong_counter(count=MESSAGES + 1, unseen=MESSAGES)
    for _ in range(K - 1):
        until_counted(bench)
        bench.come()
        bench.work()
        bench.now += DELAY
    assert bench.counts["wrong"] == K - 1
    return bench


def test_others_have_their_turn_between_two_ranges(wrong: Bench) -> None:
    wrong.watch.expect([OF_BOB])
    wrong.now += GATHER + 1
    turns = []
    for _ in range(3):
        (first, *_) = wrong.watch.ready()
        wrong.watch.work(first)
        turns.append(first.counter)
        wrong.now += 1
    assert turns == [OF_MAILBOX, OF_BOB, OF_MAILBOX]


def test_a_whole_look_takes_several_turns_and_is_a_look_like_the_others(wrong: Bench) -> None:
    assert until_counted(wrong) == MESSAGES // (ROWS - 1) + 1
    wrong.come()
    wrong.work()
    assert wrong.counter() == (MESSAGES, MESSAGES)


def test_changes_that_come_out_between_its_turns_count_as_under_way(wrong: Bench) -> None:
    wrong.work()
    wrong.come(changes={MAILBOX: 1})
    until_counted(wrong)
    wrong.come()
    wrong.work()
    assert wrong.tables.added == []
    assert wrong.counts["unsure"] == 1


def test_a_counter_that_moves_between_its_turns_does_not_make_it_void(wrong: Bench) -> None:
    wrong.work()
    more = message(9_999)
    wrong.tables.hold(MAILBOX, *wrong.tables.listing[MAILBOX], more)
    wrong.set_counter(count=MESSAGES + 2, unseen=MESSAGES + 1)
    wrong.come(changes={})
    until_counted(wrong)
    wrong.come()
    wrong.work()
    assert wrong.counts["moved"] == 0
    assert wrong.counter() == (MESSAGES + 1, MESSAGES + 1)


def test_where_nodes_change_between_its_turns_it_begins_anew(wrong: Bench) -> None:
    wrong.work()
    wrong.canaries.nodes = "two nodes"
    wrong.work()
    assert wrong.counts["moved"] == 1
    wrong.now += DELAY
    assert until_counted(wrong) == MESSAGES // (ROWS - 1) + 1


def test_where_it_differs_from_the_truth_it_ends(wrong: Bench) -> None:
    wrong.work()
    each = message(3 * MESSAGES)
    wrong.tables.set_truth(each, flagseen=True)
    until_counted(wrong)
    assert "differ from the truth" in wrong.open_finding().told
    assert wrong.tables.added == []


def test_the_last_count_of_a_very_large_mailbox_reads_marked_chunks_only(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count, "VERY_LARGE", MESSAGES - 1)
    bench.recounted(MAILBOX)
    bench.now += DELAY
    bench.tallies.mark({MAILBOX: [2]}, bench.now)
    bench.tables.read.clear()
    assert bench.counting().anew([MAILBOX])[Sum.COUNT] == MESSAGES
    assert bench.tables.read == [(MAILBOX, 20, 29)]
    monkeypatch.setattr(count, "VERY_LARGE", MESSAGES)
    bench.counting().anew([MAILBOX])
    assert bench.tables.read[1:] == [(MAILBOX, 0, 2**63 - 1)]
