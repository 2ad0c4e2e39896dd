"""Whose delete it was, and whether the truth still had the row after it.

Each history removed a row that its user kept, or that nobody can restore. The rule that keeps it is
broken on purpose further down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from checkpoints.pauses import Resumed
from reconcilers.declared.writes import Write
from reconcilers.rows import seen as seen_module
from reconcilers.rows.confirm import Moment
from reconcilers.rows.memory import Memory
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Kind, Micros, Row, Slot, Verdict
from streaming.steps import confirm as confirm_module
from streaming.steps.confirm import Confirmer
from streaming.steps.own_deletes import RememberedWrites
from streaming.steps.undo import Undoing
from tests.property.cells import Update
from tests.property.faults import Outcome
from tests.property.mail import SECOND, Fate, time_uuid
from tests.property.stories import CLIMATE, Broken, BrokenRules, Story

# --- the rules, broken on purpose ----------------------------------------------------------------

RULES = BrokenRules()
ONE_OF_TWO = BrokenRules()
"""Besides each of these that a read has found the row after the delete is enough."""
outlived_its_delete = seen_module.outlived_its_delete


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


# --- our own deletes -----------------------------------------------------------------------------


def one_of_two_accepted(run: Story) -> tuple[Slot, Slot]:
    """A message, and its copy of much later; the first is expunged, and its row is accepted."""
    first = run.added()
    run.world.pass_time(10 * CLIMATE.delay)
    both = first, run.copied(first)
    run.look_later(*both)
    run.expunge(first, Fate.LOST)
    run.look_later(*both)
    for slot in both:
        assert run.kind_reported(slot) is Kind.AMBIGUOUS_RANGE_DELETE
    finding = run.finding(first)
    assert finding is not None
    run.accept(finding)
    run.look_later(first)
    return both


@ONE_OF_TWO.kept_by(RememberedWrites, "apply", sent_at_once)
def test_a_row_that_was_accepted_says_nothing_of_the_other_one(run: Story) -> None:
    first, copy = one_of_two_accepted(run)
    assert not run.is_there(first)
    run.stays(copy, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)


@ONE_OF_TWO.kept_by(RememberedWrites, "apply", sent_at_once)
def test_what_was_undone_and_released_is_judged_as_it_was_before(run: Story) -> None:
    first, _copy = one_of_two_accepted(run)
    hold, became = run.undo(first)
    assert became is Undoing.DONE
    assert run.is_there(first)
    run.look_later(first)
    run.kept.journal.holds.withdraw(hold, Resumed(run.world.now, "ana", "go on"))
    run.stays(first, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)


def test_an_own_delete_of_which_no_answer_came_is_none_of_a_users(run: Story) -> None:
    """It was remembered before it was sent, so it makes no difference whether it arrived."""
    first = run.added_and_seen()
    run.expunge(first, Fate.LOST)
    run.settle()
    for outcome in (Outcome.APPLIED_BUT_TIMED_OUT, Outcome.LOST, Outcome.TIMED_OUT_THEN_LATE):
        run.look(run.batch_of([first]), outcome)
    run.look_later(first)
    run.settle()
    assert not run.is_there(first)
    deletes = run.kept.lineage.projection_deletes(first)
    assert not deletes.received
    assert deletes.sent is not None


# --- what the truth had after a delete -----------------------------------------------------------


def expunged_in_the_listing_alone(run: Story) -> tuple[Slot, Slot]:
    """Of the two deletes the truth's fails; the row is added again, and copied much later."""
    first = run.added_and_seen()
    run.world.expunge(first, 0, Fate.PROMPT, Fate.LOST)
    run.look_later(first, times=3)  # the first write is hidden by the tombstone
    assert run.is_there(first)
    run.world.pass_time(10 * CLIMATE.delay)
    return first, run.copied(first)


@ONE_OF_TWO.kept_by(Confirmer, "_beside_others", seen_by_nobody)
def test_a_delete_that_the_truth_survived_was_not_the_rows_end(run: Story) -> None:
    """The row is expunged again: its listing's delete is lost."""
    first, copy = expunged_in_the_listing_alone(run)
    run.look_later(copy)
    run.expunge(first, Fate.LOST)
    run.stays(copy, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)


def test_nor_does_it_mean_the_row_that_was_added_again(run: Story) -> None:
    first, copy = expunged_in_the_listing_alone(run)
    run.settle()
    run.expunge(copy)
    run.stays(first, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)


def ended_and_listed_again(run: Story) -> tuple[Slot, Slot]:
    """A row of long ago that a write which was sent again has listed, and a copy of its message."""
    first = run.added_and_seen()
    run.expunge(first)
    run.settle()
    run.world.pass_time(10 * CLIMATE.delay)
    copy = run.copied(first)
    run.look_later(copy)
    ghost = Update(first.key, run.world.now, {"messageid": run.world.slots[first], "modseq": 9})
    run.world.projection.apply(ghost)
    return first, copy


@RULES.kept_by(Confirmer, "_beside_others", seen_by_nobody)
def test_a_row_that_its_user_still_sees_has_not_ended(run: Story) -> None:
    first, copy = ended_and_listed_again(run)
    run.expunge(first, Fate.LOST)
    run.stays(copy, looks=2)


@RULES.kept_by(confirm_module, "once_heard", at_once)
def test_events_of_one_delete_may_come_some_time_apart(run: Story) -> None:
    """The row has left the listing already, and that event comes later than the truth's."""
    first, copy = ended_and_listed_again(run)
    events = len(run.world.events)
    run.expunge(first)
    run.world.pass_time(SECOND)
    late = [each for each in run.world.events[events:] if each.uid is not None]
    run.world.events[events:] = [each for each in run.world.events[events:] if each not in late]
    run.world.pass_time(CLIMATE.delay + CLIMATE.window)
    run.look_at(copy)
    assert run.is_there(copy)
    run.world.events += [replace(each, arrived=run.world.now) for each in late]
    run.stays(copy, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)


def test_a_row_that_came_and_went_within_one_look_is_remembered(run: Story) -> None:
    """It was only listed, so no event of the truth named it; its user expunged it."""
    first = run.added_and_seen()
    run.world.plant(first, 7, 0)
    run.expunge(list(run.world.slots)[-1])
    run.stays(first, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)


def test_a_delete_that_was_sent_again_took_both_rows_once(run: Story) -> None:
    run.with_content()
    first, copy = run.message_with_copy()
    run.world.expunge(copy, 0, Fate.PROMPT, Fate.SENT_TWICE)
    run.stays(first, Kind.CONTENT_LOST, looks=2)


# --- clocks, rests of rows, and births -----------------------------------------------------------


@RULES.kept_by(seen_module, "outlived_its_delete", within_ten_seconds)
def test_a_truth_row_that_outlived_its_delete_by_two_clocks_is_not_there(run: Story) -> None:
    """Its own clock is ahead by nearly D/2, and the other's behind by as much."""
    first = run.added()
    run.settle()
    run.world.ballot_ahead = CLIMATE.delay // 2 - SECOND
    copy = run.copied(first)
    run.world.ballot_ahead = 0
    run.expunge(copy, Fate.LOST, clock=SECOND - CLIMATE.delay // 2)
    run.stays(first, looks=2)


@RULES.kept_by(Memory, "contradicted", property(only_where_a_delete_was_received))
def test_a_message_that_claims_to_be_young_and_was_never_read_is_not_known(run: Story) -> None:
    """A host's clock is an hour ahead, or an agent has skipped its events."""
    message = time_uuid(run.world.now + 3600 * SECOND, 77)
    run.world.messages.append(message)
    first = run.added(message)
    run.settle()
    run.world.events.clear()
    run.lose_true(first)
    run.stays(first, looks=3)
    assert run.kind_reported(first) is not None


# --- each rule that a test holds by, broken ------------------------------------------------------


@pytest.mark.parametrize("broken", ONE_OF_TWO, ids=str)
def test_one_of_two_rules_is_enough(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them, and that a read has found the row after the delete."""
    broken.put_in_place(monkeypatch)
    broken.holds(Story())
    monkeypatch.setattr(Memory, "ended", whatever_the_truth_had)
    broken.fails()


@pytest.mark.parametrize("broken", RULES, ids=str)
def test_a_broken_rule_is_noticed(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    broken.is_noticed(monkeypatch)
