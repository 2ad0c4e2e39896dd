"""Looks at counters: what is gathered, what makes a look void, and when the last one counts all."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.declared.tally import Sums, Tally
from reconcilers.rows.finding import State
from reconcilers.words.errors import Unreachable
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.schedule import CHECK_EVERY
from tests.builders.counters import BOB, GATHER, NODE, OF_BOB, OF_MAILBOX, OTHER, Bench, K, message
from tests.builders.rows import DELAY, MAILBOX, SECOND


@pytest.fixture
def bench() -> Bench:
    """All is right, and the mailbox has changed."""
    made = Bench()
    made.expect(OF_MAILBOX)
    return made


@pytest.fixture
def wrong(bench: Bench) -> Bench:
    """The counter has one too many."""
    bench.set_counter(count=3, unseen=1)
    return bench


def whole_reads(bench: Bench) -> int:
    """How often the mailbox was listed from its first UID to its last."""
    return sum(first == 0 and last > 2**60 for _, first, last in bench.tables.read)


# --- suspicion ------------------------------------------------------------------------------------


def test_a_counter_that_agrees_is_let_go_at_the_first_glance(bench: Bench) -> None:
    bench.work()
    assert len(bench.watch) == 0
    assert bench.counts == {"agrees": 1}


def test_changes_are_gathered_before_a_glance() -> None:
    bench = Bench()
    bench.watch.expect([OF_MAILBOX])
    bench.now += GATHER - 1
    bench.watch.expect([OF_MAILBOX])
    assert bench.watch.ready() == []
    bench.now += 1
    assert [each.counter for each in bench.watch.ready()] == [OF_MAILBOX]


def test_the_next_look_is_a_delay_after_the_last_however_soon_that_was_judged(wrong: Bench) -> None:
    wrong.work()
    made = wrong.now
    wrong.now += SECOND
    wrong.watch.take(BatchSummary({}, wrong.canaries.sing()))
    wrong.work()
    assert wrong.watch.ready() == []
    wrong.now = made + DELAY
    assert [each.counter for each in wrong.watch.ready()] == [OF_MAILBOX]


def test_those_due_first_are_worked_on_first() -> None:
    bench = Bench()
    bench.watch.expect([OF_BOB])
    bench.now += SECOND
    bench.watch.expect([OF_MAILBOX])
    bench.now += GATHER
    assert [each.counter for each in bench.watch.ready()] == [OF_BOB, OF_MAILBOX]


def test_a_missing_counter_row_counts_as_zero(bench: Bench) -> None:
    bench.tables.rows.clear()
    bench.look(K)
    assert bench.counter() == (2, 1)


def test_a_missing_quota_row_is_let_alone() -> None:
    bench = Bench()
    bench.tables.rows.clear()
    bench.expect(OF_BOB)
    bench.work()
    assert len(bench.watch) == 0
    assert bench.tables.added == []


def test_a_mailbox_that_does_not_exist_is_let_alone(wrong: Bench) -> None:
    wrong.tables.give(MAILBOX, None)
    wrong.work()
    assert len(wrong.watch) == 0


# --- looks ----------------------------------------------------------------------------------------


def test_a_look_waits_however_long_it_takes(wrong: Bench) -> None:
    wrong.work()
    for _ in range(100):
        wrong.now += DELAY
        wrong.watch.take(BatchSummary(proven={NODE: 1}))
        wrong.work()
    wrong.come()
    wrong.work()
    assert wrong.counts == {"wrong": 1}


def test_a_look_waits_for_what_was_written_until_its_end(
    wrong: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = wrong.tables.stored

    def slowly(tally: Tally, key: UUID | str) -> Sums | None:
        wrong.canaries.number += 5
        return stored(tally, key)

    monkeypatch.setattr(wrong.tables, "stored", slowly)
    wrong.work()
    wrong.watch.take(BatchSummary(proven={NODE: wrong.canaries.number}))
    assert wrong.watch.ready() == []
    wrong.watch.take(BatchSummary(proven={NODE: wrong.canaries.number + 1}))
    assert len(wrong.watch.ready()) == 1


def test_a_look_without_any_canary_tells_nothing(wrong: Bench) -> None:
    wrong.canaries.mute = True
    wrong.work()
    assert wrong.counts == {"no canary": 1}
    wrong.canaries.mute = False
    wrong.now += DELAY
    wrong.look()
    assert wrong.counts == {"no canary": 1, "wrong": 1}


@pytest.mark.parametrize("comes_out", [True, False])
def test_a_look_is_void_when_nodes_or_tables_change_meanwhile(
    wrong: Bench, comes_out: bool
) -> None:
    wrong.work()
    wrong.canaries.nodes = "two nodes"
    wrong.now += CHECK_EVERY
    if comes_out:
        wrong.come()
    wrong.work()
    assert wrong.counts == {"nodes changed": 1}


def test_changes_that_come_out_meanwhile_widen_the_interval(wrong: Bench) -> None:
    wrong.look(changes={MAILBOX: 1, OTHER: 5})
    assert wrong.counts == {"unsure": 1}
    wrong.look(changes={OTHER: 5})
    assert wrong.counts == {"unsure": 1, "wrong": 1}


def test_a_quota_is_unsure_while_any_of_its_mailboxes_changes() -> None:
    bench = Bench()
    bench.tables.give(OTHER, BOB)
    bench.with_wrong_quota()
    bench.look(changes={OTHER: 1})
    assert bench.counts == {"unsure": 1}


def test_a_counter_that_moves_while_it_is_looked_at_tells_nothing(
    wrong: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter([3, 3, 4])
    row = wrong.tables.rows[OF_MAILBOX.tally.name, MAILBOX] or {}

    def moving(tally: Tally, key: object) -> Sums:
        return {each: next(counts) if each == "count" else value for each, value in row.items()}

    monkeypatch.setattr(wrong.tables, "stored", moving)
    wrong.work()
    assert wrong.counts == {"moved": 1}
    assert wrong.watch.ready() == []


def test_what_comes_out_after_a_look_is_complete_does_not_count(wrong: Bench) -> None:
    wrong.work()
    wrong.come()
    wrong.watch.take(BatchSummary({MAILBOX: 1}, {NODE: wrong.canaries.number}))
    wrong.work()
    assert wrong.counts == {"wrong": 1}


def test_the_same_batch_told_twice_voids_nothing(wrong: Bench) -> None:
    came = BatchSummary(proven={NODE: 1})
    wrong.watch.take(came)
    wrong.work()
    wrong.watch.take(came)
    wrong.come()
    wrong.work()
    assert wrong.counts == {"wrong": 1}


def test_a_doubt_of_a_moment_is_not_told_and_one_that_stays_is(bench: Bench) -> None:
    bench.tables.paths[BOB].add(OTHER)  # its mailbox is being made
    bench.expect(OF_BOB)
    bench.work()
    assert bench.finding(OF_BOB) is None
    bench.now += DELAY
    bench.work()
    assert str(OTHER) in bench.open_finding(OF_BOB).told
    assert bench.counts["in doubt"] == 2


# --- from looks to a correction -------------------------------------------------------------------


def test_so_many_looks_on_one_side_and_it_is_corrected_once(wrong: Bench) -> None:
    wrong.look(K - 1)
    assert wrong.tables.added == []
    wrong.look()
    assert wrong.counter() == (2, 1)
    wrong.look(K)
    assert len(wrong.tables.added) == 1


def test_only_the_last_look_counts_the_whole_mailbox(wrong: Bench) -> None:
    wrong.look(K - 1)
    assert whole_reads(wrong) == 1  # its first count
    wrong.work()
    assert whole_reads(wrong) == 2


def test_looks_before_a_correction_do_not_count_after_it(wrong: Bench) -> None:
    wrong.look(K)
    wrong.set_counter(count=5, unseen=1)
    wrong.look(K - 1)
    assert len(wrong.tables.added) == 1
    wrong.look()
    assert len(wrong.tables.added) == 2


def test_looks_before_somebody_elses_correction_do_not_count(wrong: Bench) -> None:
    wrong.look(K - 1)
    wrong.rounds.claim(OF_MAILBOX.tally.name, str(MAILBOX), 0)
    wrong.look(K - 1)
    assert wrong.tables.added == []


def test_a_round_that_somebody_else_claims_first_is_not_sent(
    wrong: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrong.rounds, "claim", lambda tally, key, after: False)
    wrong.look(K)
    assert wrong.tables.added == []
    assert wrong.finding() is None


def test_looks_of_other_mailboxes_do_not_count_for_a_quota() -> None:
    bench = Bench().with_wrong_quota(count=3, size=300)
    bench.look(K - 1)
    bench.tables.give(OTHER, BOB)
    bench.look()
    assert bench.tables.added == []


def test_a_corrected_counter_is_looked_at_one_delay_later_and_verified(wrong: Bench) -> None:
    wrong.look_all_but_the_judgement()
    wrong.work()
    assert wrong.watch.ready() == []
    assert wrong.states() == [State.INTENDED]
    wrong.now += DELAY
    wrong.look()
    assert wrong.states() == [State.INTENDED, State.VERIFIED]
    assert len(wrong.watch) == 0


def test_a_mailbox_deleted_before_its_correction_gets_none(wrong: Bench) -> None:
    wrong.look_all_but_the_judgement()
    wrong.tables.give(MAILBOX, None)
    wrong.work()
    assert wrong.tables.added == []
    wrong.now += DELAY
    wrong.work()
    assert len(wrong.watch) == 0


def test_a_counter_that_somebody_else_has_corrected_meanwhile_is_let_be(wrong: Bench) -> None:
    wrong.look_all_but_the_judgement()
    wrong.set_counter(count=2, unseen=1)
    wrong.work()
    assert wrong.tables.added == []


def test_an_update_that_was_lost_since_the_last_look_is_seen_before_it_has_come_out(
    wrong: Bench,
) -> None:
    wrong.look_all_but_the_judgement()
    three = (message(1), message(2, seen=True), message(3, seen=True))
    wrong.tables.hold(MAILBOX, *three)  # its chunk is not marked yet
    wrong.work()
    assert wrong.tables.added == []


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["stored", "listed", "owner"])
def test_what_cannot_be_read_is_tried_again(wrong: Bench, call: str) -> None:
    wrong.tables.fails[call] = Unreachable("no host answered")
    (watched,) = wrong.watch.ready()
    with pytest.raises(Unreachable):
        wrong.watch.work(watched)
    wrong.watch.put_off(watched, by=SECOND)
    assert wrong.watch.ready() == []
    wrong.now += SECOND
    wrong.look(K)
    assert wrong.counter() == (2, 1)


def test_a_claim_without_an_answer_costs_fresh_looks_if_it_succeeded(
    wrong: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, fails = wrong.rounds.claim, [True]

    def unanswered(tally: str, key: str, after: int) -> bool:
        claimed = claim(tally, key, after)
        if fails.pop() if fails else False:
            raise Unreachable("no answer")
        return claimed

    monkeypatch.setattr(wrong.rounds, "claim", unanswered)
    with pytest.raises(Unreachable):
        wrong.look(K)
    wrong.now += DELAY
    wrong.look(K - 1)
    assert wrong.tables.added == []
    wrong.look()
    assert [write.round for write in wrong.tables.added] == [2]


def test_more_than_the_change_under_way_is_corrected_at_once_the_rest_later(bench: Bench) -> None:
    bench.set_counter(count=12, unseen=1)
    bench.look(K, changes={MAILBOX: 4})
    assert bench.counter() == (6, 1)
    bench.look(K)
    assert bench.counter() == (2, 1)


def test_a_message_that_comes_meanwhile_is_no_error(bench: Bench) -> None:
    bench.tables.hold(MAILBOX, message(1), message(2, seen=True), message(3))
    bench.tallies.mark({MAILBOX: {0}}, bench.now)
    bench.look(changes={MAILBOX: 1})
    assert bench.counts == {"unsure": 1}
    bench.set_counter(count=3, unseen=2)
    bench.work()
    assert bench.tables.added == []


def test_each_quota_root_is_its_own() -> None:
    bench = Bench()
    bench.set_quota(count=3, size=200)
    bench.expect(OF_BOB, OF_MAILBOX, replace(OF_BOB, key="#private&eve"))
    bench.look(K)
    assert [write.key for write in bench.tables.added] == [str(BOB)]
