"""Whose delete it was, and whether the truth still had the row after it.

Each history removed a row that its user kept, or that nobody can restore. The rule that keeps it is
broken on purpose further down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from checkpoints.pauses import Resumed
from reconcilers.declared.writes import Write
from reconcilers.limits.hold import Hold
from reconcilers.rows import seen as seen_module
from reconcilers.rows.confirm import Moment
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import State
from reconcilers.rows.memory import Memory
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Kind, Micros, Row, Slot, Verdict
from streaming.steps import confirm as confirm_module
from streaming.steps.confirm import Confirmer
from streaming.steps.own_deletes import RememberedWrites
from streaming.steps.undo import RowUndo, Undoing
from tests.builders.slots import mailbox_of, uid_of
from tests.property.cells import Delete, Update
from tests.property.faults import Outcome
from tests.property.mail import FAMILY, SECOND, Fate, time_uuid
from tests.property.message_ports import PROJECTION, Ports
from tests.property.races import Run
from tests.property.test_evidence import (
    CLIMATE,
    a_run,
    added,
    expunge,
    is_there,
    kind_reported,
    look,
    message_with_copy,
    settle,
)
from tests.property.test_evidence_past import a_run_with_content, look_twice


def accept(run: Run, slot: Slot) -> None:
    finding = run.finding(slot)
    assert finding is not None
    run.kept.journal.touch(accepted(finding, run.world.now))


def undo(run: Run, slot: Slot) -> Hold:
    hold = Hold(FAMILY.name, PROJECTION.name, slot, run.world.now, "ana", "it was wrong")
    ports = Ports(run.kept, Outcome.APPLIED)
    undoing = RowUndo(
        *(FAMILY, ports, run.kept.journal, run.kept.lineage),
        paused=lambda *_: None,
        clock=ports.clock,
    )
    assert undoing.carry_out(run.kept.repairs[slot], hold).what is Undoing.DONE
    return hold


# --- our own deletes -----------------------------------------------------------------------------


def one_of_two_accepted(run: Run) -> tuple[Slot, Slot]:
    """A message, and its copy of much later; the first is expunged, and its row is accepted."""
    first = added(run)
    run.world.pass_time(10 * CLIMATE.delay)
    copy = added(run, run.world.slots[first])
    settle(run)
    for slot in (first, copy):
        look(run, slot)
    expunge(run, first, Fate.LOST)
    settle(run)
    for slot in (first, copy):
        look(run, slot)
        assert kind_reported(run, slot) is Kind.AMBIGUOUS_RANGE_DELETE
    accept(run, first)
    settle(run)
    look(run, first)
    return first, copy


def test_a_row_that_was_accepted_says_nothing_of_the_other_one() -> None:
    run = a_run()
    first, copy = one_of_two_accepted(run)
    assert not is_there(run, first)
    for _ in range(2):
        settle(run)
        look(run, copy)
    assert is_there(run, copy)
    assert kind_reported(run, copy) is Kind.AMBIGUOUS_RANGE_DELETE


def test_what_was_undone_and_released_is_judged_as_it_was_before() -> None:
    run = a_run()
    first, _copy = one_of_two_accepted(run)
    hold = undo(run, first)
    assert is_there(run, first)
    settle(run)
    look(run, first)
    run.kept.journal.holds.withdraw(hold, Resumed(run.world.now, "ana", "go on"))
    for _ in range(2):
        settle(run)
        look(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.AMBIGUOUS_RANGE_DELETE


def test_an_own_delete_of_which_no_answer_came_is_none_of_a_users() -> None:
    """It was remembered before it was sent, so it makes no difference whether it arrived."""
    run = a_run()
    first = added(run)
    settle(run)
    look(run, first)
    expunge(run, first, Fate.LOST)
    settle(run)
    for outcome in (Outcome.APPLIED_BUT_TIMED_OUT, Outcome.LOST, Outcome.TIMED_OUT_THEN_LATE):
        run.look(run.batch_of([first]), outcome)
    settle(run)
    look(run, first)
    settle(run)
    assert not is_there(run, first)
    assert not run.kept.lineage.projection_deletes(first).received
    assert run.kept.lineage.projection_deletes(first).sent is not None


# --- what the truth had after a delete -----------------------------------------------------------


def expunged_in_the_listing_alone(run: Run) -> Slot:
    """Of the two deletes the truth's fails; the row is added again."""
    first = added(run)
    settle(run)
    look(run, first)
    run.world.expunge(first, 0, Fate.PROMPT, Fate.LOST)
    for _ in range(3):  # the first write is hidden by the tombstone
        settle(run)
        look(run, first)
    assert is_there(run, first)
    run.world.pass_time(10 * CLIMATE.delay)
    return first


def test_a_delete_that_the_truth_survived_was_not_the_rows_end() -> None:
    """A copy is made much later, and the row is expunged again: its listing's delete is lost."""
    run = a_run()
    first = expunged_in_the_listing_alone(run)
    copy = added(run, run.world.slots[first])
    settle(run)
    look(run, copy)
    expunge(run, first, Fate.LOST)
    for _ in range(2):
        settle(run)
        look(run, copy)
    assert is_there(run, copy)
    assert kind_reported(run, copy) is Kind.AMBIGUOUS_RANGE_DELETE


def test_nor_does_it_mean_the_row_that_was_added_again() -> None:
    run = a_run()
    first = expunged_in_the_listing_alone(run)
    copy = added(run, run.world.slots[first])
    settle(run)
    expunge(run, copy)
    for _ in range(2):
        settle(run)
        look(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.AMBIGUOUS_RANGE_DELETE


def ended_and_listed_again(run: Run) -> tuple[Slot, Slot]:
    """A row of long ago that a write which was sent again has listed, and a copy of its message."""
    first = added(run)
    settle(run)
    look(run, first)
    expunge(run, first)
    settle(run)
    run.world.pass_time(10 * CLIMATE.delay)
    copy = added(run, run.world.slots[first])
    settle(run)
    look(run, copy)
    ghost = Update(first.key, run.world.now, {"messageid": run.world.slots[first], "modseq": 9})
    run.world.projection.apply(ghost)
    return first, copy


def test_a_row_that_its_user_still_sees_has_not_ended() -> None:
    run = a_run()
    first, copy = ended_and_listed_again(run)
    expunge(run, first, Fate.LOST)
    for _ in range(2):
        settle(run)
        look(run, copy)
    assert is_there(run, copy)


def test_events_of_one_delete_may_come_some_time_apart() -> None:
    """The row has left the listing already, and that event comes later than the truth's."""
    run = a_run()
    first, copy = ended_and_listed_again(run)
    events = len(run.world.events)
    expunge(run, first)
    run.world.pass_time(SECOND)
    late = [each for each in run.world.events[events:] if each.uid is not None]
    run.world.events[events:] = [each for each in run.world.events[events:] if each not in late]
    run.world.pass_time(CLIMATE.delay + CLIMATE.window)
    look(run, copy)
    assert is_there(run, copy)
    run.world.events += [replace(each, arrived=run.world.now) for each in late]
    for _ in range(2):
        settle(run)
        look(run, copy)
    assert is_there(run, copy)
    assert kind_reported(run, copy) is Kind.AMBIGUOUS_RANGE_DELETE


def test_a_row_that_came_and_went_within_one_look_is_remembered() -> None:
    """It was only listed, so no event of the truth named it; its user expunged it."""
    run = a_run()
    first = added(run)
    settle(run)
    look(run, first)
    run.world.plant(first, 7, 0)
    expunge(run, list(run.world.slots)[-1])
    for _ in range(2):
        settle(run)
        look(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.AMBIGUOUS_RANGE_DELETE


# --- one delete that was sent again --------------------------------------------------------------


def test_a_delete_that_was_sent_again_took_both_rows_once() -> None:
    run, _ = a_run_with_content()
    first, copy = message_with_copy(run)
    settle(run)
    run.world.expunge(copy, 0, Fate.PROMPT, Fate.SENT_TWICE)
    look_twice(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.CONTENT_LOST


# --- clocks, rests of rows, and births -----------------------------------------------------------


def test_a_truth_row_that_outlived_its_delete_by_two_clocks_is_not_there() -> None:
    """Its own clock is ahead by nearly D/2, and the other's behind by as much."""
    run = a_run()
    first = added(run)
    settle(run)
    run.world.ballot_ahead = CLIMATE.delay // 2 - SECOND
    copy = added(run, run.world.slots[first])
    run.world.ballot_ahead = 0
    expunge(run, copy, Fate.LOST, clock=SECOND - CLIMATE.delay // 2)
    for _ in range(2):
        settle(run)
        look(run, first)
    assert is_there(run, first)


def test_a_message_that_claims_to_be_young_and_was_never_read_is_not_known() -> None:
    """A host's clock is an hour ahead, or an agent has skipped its events."""
    run = a_run()
    message = time_uuid(run.world.now + 3600 * SECOND, 77)
    run.world.messages.append(message)
    first = added(run, message)
    settle(run)
    run.world.events.clear()
    key = (message, mailbox_of(first), uid_of(first))
    run.world.truth.apply(Delete(key, run.world.now))
    for _ in range(3):
        settle(run)
        look(run, first)
    assert is_there(run, first)
    finding = run.finding(first)
    assert finding is not None
    assert finding.state is State.REPORTED


# --- the rules, broken on purpose ----------------------------------------------------------------


def sent_at_once(self: RememberedWrites, writes: Sequence[Write]) -> None:
    """Our own deletes are not told from those of users."""
    self.tables.apply(writes)


def whatever_the_truth_had(self: Memory, slot: Slot, delay: Micros) -> Micros:
    """A delete ends a row though the truth had it after that."""
    return -(2**63)


def seen_by_nobody(self: Confirmer, seen: Sequence[Seen]) -> list[Seen]:
    """What the listing has of the other rows is not asked."""
    return list(seen)


def at_once(seen: Seen, verdict: Verdict, moment: Moment) -> Verdict:
    """Events of one delete are taken to come together."""
    return verdict


def within_ten_seconds(truth: Row, memory: Memory, delay: Micros) -> bool:
    """Clocks are taken to differ by less than they may."""
    return outlived_its_delete(truth, memory, 10 * SECOND)


def only_where_a_delete_was_received(self: Memory) -> bool:
    """A source of which nothing was ever read or received is as its id says."""
    return bool(self.range_deletes) and not self.known


outlived_its_delete = seen_module.outlived_its_delete

BROKEN: tuple[tuple[object, str, object, Callable[[], None]], ...] = (
    (
        Confirmer,
        "_beside_others",
        seen_by_nobody,
        test_a_row_that_its_user_still_sees_has_not_ended,
    ),
    (
        confirm_module,
        "once_heard",
        at_once,
        test_events_of_one_delete_may_come_some_time_apart,
    ),
    (
        seen_module,
        "outlived_its_delete",
        within_ten_seconds,
        test_a_truth_row_that_outlived_its_delete_by_two_clocks_is_not_there,
    ),
    (
        Memory,
        "contradicted",
        property(only_where_a_delete_was_received),
        test_a_message_that_claims_to_be_young_and_was_never_read_is_not_known,
    ),
)


@pytest.mark.parametrize(
    ("where", "name", "rule", "holds"),
    [
        (
            Confirmer,
            "_beside_others",
            seen_by_nobody,
            test_a_delete_that_the_truth_survived_was_not_the_rows_end,
        ),
        (
            RememberedWrites,
            "apply",
            sent_at_once,
            test_a_row_that_was_accepted_says_nothing_of_the_other_one,
        ),
        (
            RememberedWrites,
            "apply",
            sent_at_once,
            test_what_was_undone_and_released_is_judged_as_it_was_before,
        ),
    ],
)
def test_one_of_two_rules_is_enough(
    where: object,
    name: str,
    rule: object,
    holds: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them, and that a read has found the row after the delete."""
    monkeypatch.setattr(where, name, rule)
    holds()
    monkeypatch.setattr(Memory, "ended", whatever_the_truth_had)
    with pytest.raises(AssertionError):
        holds()


@pytest.mark.parametrize(
    ("where", "name", "rule", "holds"), BROKEN, ids=[each[3].__name__ for each in BROKEN]
)
def test_a_broken_rule_is_noticed(
    where: object,
    name: str,
    rule: object,
    holds: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(where, name, rule)
    with pytest.raises(AssertionError):
        holds()
