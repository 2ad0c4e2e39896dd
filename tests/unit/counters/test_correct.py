"""Why a counter is not corrected, what its finding says, and how that ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkpoints.clock import HOUR
from reconcilers.declared.tally import Sum
from reconcilers.declared.writes import AddToCounter
from reconcilers.rows.decision import retried
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Refused, Retryable, Unreachable
from reconcilers.words.model import Kind, Row
from reconcilers.words.waiting import Wait, Waiting
from streaming.counters.correct import Conclusion
from tests.builders.counters import (
    A_NODE_IS_DOWN,
    AGAIN,
    OF_MAILBOX,
    Bench,
    K,
    message,
)
from tests.builders.failing import unreachable
from tests.builders.rows import DELAY, MAILBOX, SECOND
from tests.property.faults import CrashError


@pytest.fixture
def wrong() -> Bench:
    return Bench().with_wrong_counter()


def held(bench: Bench) -> Finding:
    found = bench.open_finding()
    assert (found.kind, found.state) == (Kind.COUNTER_DRIFT, State.HELD)
    assert bench.tables.added == []
    return found


# --- what it has to wait for ----------------------------------------------------------------------


def test_while_a_node_is_away_it_waits_and_says_so_and_is_let_go(wrong: Bench) -> None:
    wrong.trouble = Waiting(Wait.NODE_AWAY, "node 10.0.0.2 is down")
    wrong.look(K)
    assert held(wrong).waits == wrong.trouble
    assert held(wrong).source is None
    assert len(wrong.watch) == 0


def test_while_the_breaker_is_open_it_waits(wrong: Bench) -> None:
    refused = Waiting(Wait.BREAKER, "breaker repairs: 1200 in a minute")
    wrong.look(K, refused=refused)
    assert held(wrong).waits == refused


def test_a_message_that_the_projection_lacks_comes_first(wrong: Bench) -> None:
    lost = message(3)
    wrong.tables.set_truth(lost)
    wrong.remember(MAILBOX, lost)
    wrong.look(K)
    assert held(wrong).wait is Wait.MESSAGES_DIFFER
    assert "1 messages" in held(wrong).told


def test_two_truth_rows_on_one_uid_defer_their_mailbox(wrong: Bench) -> None:
    twin = replace(message(1), messageid=message(9).messageid)
    wrong.tables.set_truth(twin)
    wrong.remember(MAILBOX, twin)
    wrong.look(K)
    assert "two truth rows claim UID 1" in held(wrong).told


def test_what_moves_in_the_last_moment_is_looked_at_anew_and_nothing_told(
    wrong: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong.look_all_but_the_judgement()
    stored = wrong.tables.stored

    def moving(tally: object, key: object) -> object:
        row = stored(tally, key)  # type: ignore[arg-type]
        wrong.set_counter(count=4, unseen=1)
        return row

    monkeypatch.setattr(wrong.tables, "stored", moving)
    wrong.work()
    assert wrong.tables.added == []
    assert wrong.finding() is None


# --- how waiting ends -----------------------------------------------------------------------------


def test_when_the_reason_is_gone_it_is_corrected_under_the_same_finding(wrong: Bench) -> None:
    wrong.trouble = A_NODE_IS_DOWN
    wrong.look(K)
    wrong.trouble = None
    wrong.now += AGAIN
    wrong.expect(OF_MAILBOX)
    wrong.look(K)
    assert wrong.states() == [State.HELD, State.INTENDED]
    wrong.look()
    assert wrong.finding() is None
    assert wrong.states()[-1] is State.VERIFIED


def test_what_waits_is_told_once_and_its_next_look_put_off(wrong: Bench) -> None:
    wrong.trouble = A_NODE_IS_DOWN
    for _ in range(2):
        wrong.look(K)
        wrong.now += AGAIN
        wrong.expect(OF_MAILBOX)
    assert wrong.states() == [State.HELD]
    assert (held(wrong).next_look or 0) > wrong.now - 2 * AGAIN


def test_what_has_ended_in_the_journal_since_is_found_and_told_anew(wrong: Bench) -> None:
    wrong.trouble = A_NODE_IS_DOWN
    wrong.look(K)
    before = held(wrong)
    wrong.journal.close(before, State.HEALED, wrong.now)
    wrong.now += AGAIN
    wrong.expect(OF_MAILBOX)
    wrong.look(K)
    assert held(wrong).found_at > before.found_at
    assert wrong.states() == [State.HELD, State.HELD]


@pytest.mark.parametrize("gone", ["mailbox", "right"])
def test_a_finding_that_waits_is_healed_when_there_is_nothing_to_correct(
    wrong: Bench, gone: str
) -> None:
    wrong.trouble = A_NODE_IS_DOWN
    wrong.look(K)
    if gone == "mailbox":
        wrong.tables.give(MAILBOX, None)
        wrong.owners.read_again(OF_MAILBOX)
    else:
        wrong.set_counter(count=2, unseen=1)
    wrong.expect(OF_MAILBOX)
    wrong.look()
    assert wrong.finding() is None
    assert wrong.states() == [State.HELD, State.HEALED]
    assert len(wrong.watch) == 0


def test_a_correction_of_a_mailbox_that_is_gone_is_not_called_verified(wrong: Bench) -> None:
    wrong.look(K)
    wrong.tables.give(MAILBOX, None)
    wrong.owners.read_again(OF_MAILBOX)
    wrong.look()
    assert wrong.states() == [State.INTENDED, State.HEALED]


# --- a correction ---------------------------------------------------------------------------------


def test_a_correction_is_journalled_with_what_was_there_before_it_is_sent(wrong: Bench) -> None:
    wrong.look(K)
    found = wrong.open_finding()
    assert (found.state, found.attempts, found.batch) == (State.INTENDED, 1, "round 1")
    assert found.sentence == f"mailbox {MAILBOX}: count 3 should be 2; adding -1 to count"
    assert found.before == Row({"count": 3, "unseen": 1})
    (write,) = found.writes
    assert write == wrong.tables.added[0]


def test_nothing_is_sent_that_the_journal_does_not_hold(
    wrong: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(wrong.journal, "put", unreachable)
        with pytest.raises(Unreachable):
            wrong.look(K)
    wrong.now += DELAY
    wrong.look(K - 1)
    assert wrong.tables.added == []  # its round is used up: K fresh looks
    wrong.look()
    assert [each.round for each in wrong.tables.added] == [2]


def test_a_delta_is_not_sent_long_after_its_claim(
    wrong: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = wrong.journal.put

    def slowly(finding: Finding) -> None:
        put(finding)
        wrong.now += DELAY + 1

    with monkeypatch.context() as slow:
        slow.setattr(wrong.journal, "put", slowly)
        wrong.look(K)
    assert wrong.tables.added == []
    assert wrong.open_finding().attempts == 0


def test_a_wall_clock_that_is_set_back_does_not_hide_how_long_it_took(
    wrong: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = wrong.journal.put

    def slowly(finding: Finding) -> None:
        put(finding)
        wrong.steady = wrong.now + DELAY + 1
        wrong.now -= 3_600 * SECOND

    wrong.look_all_but_the_judgement()
    monkeypatch.setattr(wrong.journal, "put", slowly)
    wrong.work()
    assert wrong.tables.added == []
    assert wrong.states() == [State.INTENDED]


@pytest.mark.parametrize("applied", [True, False])
def test_a_delta_without_an_answer_is_looked_at_again_and_is_no_attempt(
    wrong: Bench, applied: bool
) -> None:
    for _ in range(5):
        wrong.tables.fails["add"] = Unreachable("no answer in time")
        wrong.look(K)
    found = wrong.open_finding()
    assert (found.state, found.attempts) == (State.INTENDED, 0)
    if applied:
        wrong.set_counter(count=2, unseen=1)
    wrong.tables.fails.clear()
    wrong.look(K + 1)
    assert wrong.counter() == (2, 1)
    assert wrong.finding() is None
    assert wrong.states()[-1] is State.VERIFIED


def test_another_error_than_was_corrected_supersedes_its_finding(wrong: Bench) -> None:
    wrong.look(K)
    wrong.set_counter(count=7, unseen=1)
    wrong.look(K)
    assert wrong.states() == [State.INTENDED, State.SUPERSEDED, State.INTENDED]
    assert wrong.open_finding().attempts == 1


def test_a_mailbox_is_corrected_by_any_number_below_the_limit() -> None:
    wrong = Bench(most=dict.fromkeys(Sum, 1_000_000)).with_wrong_counter()
    wrong.set_counter(count=1_000_000, unseen=-7)
    wrong.look(K)
    assert wrong.counter() == (2, 1)


# --- stuck ----------------------------------------------------------------------------------------


@pytest.fixture
def stuck(wrong: Bench) -> Bench:
    """Somebody undoes each correction."""
    for _ in range(4):
        wrong.look(K)
        wrong.set_counter(count=3, unseen=1)
    return wrong


def test_the_same_correction_is_tried_so_often_then_it_is_stuck(stuck: Bench) -> None:
    found = stuck.open_finding()
    assert found.state is State.STUCK
    assert "3 such corrections did not hold" in found.sentence
    assert len(stuck.tables.added) == 3


def test_a_correction_that_held_does_not_speak_against_that_of_the_rest(wrong: Bench) -> None:
    """Of a counter that users write, only a part of the error may be sure, again and again."""
    wrong.set_counter(count=8, unseen=1)
    for number in range(6):
        looked = Conclusion(frozenset({MAILBOX}), number, {Sum.COUNT: 1})
        wrong.correcting.correct(OF_MAILBOX, looked, None)
        found = wrong.open_finding()
        assert (found.state, found.attempts) == (State.INTENDED, 1)
    assert wrong.counter() == (2, 1)


@pytest.mark.parametrize("applied", [True, False])
def test_a_process_that_dies_over_its_delta_has_not_tried_it(
    wrong: Bench, applied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(write: AddToCounter) -> None:
        raise CrashError("before the write")

    for _ in range(5):
        wrong.set_counter(count=3, unseen=1)
        with monkeypatch.context() as dying:
            dying.setattr(wrong.tables, "add", dies)
            with pytest.raises(CrashError):
                wrong.look(K)
        wrong.begin()
        wrong.findings.recall()
        wrong.expect(OF_MAILBOX)
    if applied:
        wrong.set_counter(count=2, unseen=1)
    wrong.look(K + 1)
    assert wrong.counter() == (2, 1)
    assert wrong.states()[-1] is State.VERIFIED


def test_what_is_stuck_stays_so_through_other_reasons_to_wait(stuck: Bench) -> None:
    stuck.trouble = A_NODE_IS_DOWN
    stuck.expect(OF_MAILBOX)
    stuck.look(K)
    stuck.trouble = None
    stuck.expect(OF_MAILBOX)
    stuck.look(2 * K)
    assert stuck.open_finding().state is State.STUCK
    assert len(stuck.tables.added) == 3


def test_what_is_stuck_is_tried_anew_when_an_operator_says_so(stuck: Bench) -> None:
    stuck.journal.put(retried(stuck.open_finding(), stuck.now))
    stuck.recall()
    stuck.expect(OF_MAILBOX)
    stuck.look(K)
    assert stuck.counter() == (2, 1)
    assert stuck.open_finding().attempts == 1


def test_another_error_of_what_is_stuck_is_corrected(stuck: Bench) -> None:
    stuck.with_wrong_counter(count=9)
    stuck.look(K)
    assert stuck.counter() == (2, 1)


def test_what_is_stuck_ends_when_it_is_right(stuck: Bench) -> None:
    stuck.with_wrong_counter(count=2)
    stuck.look()
    assert stuck.finding() is None


# --- observing, and tables that refuse ------------------------------------------------------------


def test_an_observer_says_what_it_would_add_and_adds_nothing() -> None:
    bench = Bench(observe=True).with_wrong_counter()
    bench.look(2 * K)
    found = bench.open_finding()
    assert found.state is State.OBSERVED
    assert found.sentence.endswith("adding -1 to count")
    assert bench.tables.added == []
    assert bench.rounds.current(OF_MAILBOX.tally.name, str(MAILBOX)) == 0


def test_what_was_observed_is_corrected_in_repair_mode() -> None:
    bench = Bench(observe=True).with_wrong_counter()
    bench.look(K)
    bench.observe = False
    bench.begin()
    bench.recall()
    bench.expect(OF_MAILBOX)
    bench.look(K)
    assert bench.counter() == (2, 1)
    assert bench.states() == [State.OBSERVED, State.INTENDED]


def test_a_counter_whose_table_refuses_is_let_alone_for_a_time_and_then_freed(
    wrong: Bench,
) -> None:
    wrong.tables.fails["add"] = Refused("no MODIFY permission")
    wrong.look(3 * K)
    assert wrong.tables.added == []
    assert wrong.finding() is None
    assert [(each.kind, end or each.state) for each, end in wrong.told] == [
        (Kind.COUNTER_DRIFT, State.INTENDED),
        (Kind.TABLE_REFUSES, State.REPORTED),
    ]
    assert [end for _, end in wrong.told] == [None, None]
    wrong.now += AGAIN
    wrong.look(K)
    assert wrong.counter() == (2, 1)
    assert State.HEALED in wrong.states()


def test_while_its_table_refuses_a_counter_is_marked_so_that_a_restart_finds_it(
    wrong: Bench,
) -> None:
    wrong.tables.fails["add"] = Refused("no MODIFY permission")
    wrong.look(K)
    before = wrong.now
    wrong.look(2 * K)
    assert list(wrong.tallies.marked_in(before // HOUR)) == [MAILBOX]


def test_without_a_finding_nothing_ends(wrong: Bench) -> None:
    for way in (wrong.findings.close_as_right, wrong.findings.gone, wrong.findings.open_at):
        assert way(OF_MAILBOX) is None
    assert wrong.told == []


def test_an_unanswered_journal_after_a_delta_sends_nothing_again(
    wrong: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:

        def taken(write: AddToCounter) -> None:
            broken.setattr(wrong.journal, "touch", unreachable)
            add(write)

        add = wrong.tables.add
        broken.setattr(wrong.tables, "add", taken)
        with pytest.raises(Retryable):
            wrong.look(K)
    wrong.now += DELAY
    wrong.look(K)
    assert [each.round for each in wrong.tables.added] == [1]
