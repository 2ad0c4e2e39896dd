"""Which row did its user delete? The truth's range delete takes every UID of a message.

The surviving row of a copy within a mailbox is kept and reported; a plain expunge is repaired.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.rows import evidence, memory, seen
from reconcilers.rows.finding import State
from reconcilers.rows.memory import Entry, Memory, Watching
from reconcilers.words.model import Kind, Micros, Slot, Value, Wake
from streaming.steps.look_state import LookState
from streaming.steps.record_lineage import LineageRecorder
from tests.property.cells import Update
from tests.property.mail import MILLISECOND, SECOND, Fate, time_uuid
from tests.property.stories import CLIMATE, Broken, BrokenRules, Story

# --- the rules of evidence, broken on purpose -----------------------------------------------------

RULES = BrokenRules()
memory_complete_at = memory.complete_at
partition_deletes = LineageRecorder.partition_deletes


def nothing_remembered(
    self: LineageRecorder, wakes: Iterable[Wake], state: LookState, now: Micros
) -> None:
    """What a look has read is forgotten."""


def remembered_whenever_read(
    messageid: UUID, here: Iterable[Entry], watching: Watching | None
) -> Micros | None:
    """What was read before watching began is believed."""
    return memory_complete_at(messageid, here, Watching(1))


def never_outdated(self: LineageRecorder, before: Entry | None) -> bool:
    """What was read before watching began (anew) is not read again."""
    return before is None or before.recorded_at is None


def echoed_deletes_remembered(
    self: LineageRecorder, wakes: Iterable[Wake], state: LookState
) -> None:
    """A delete that comes round counts as one of what is gone by then."""
    partition_deletes(self, [replace(wake, looked_again=False) for wake in wakes], state)


def whatever_is_known(self: Memory, slot: Slot) -> bool:
    """A row counts as one of whole memory though it was lost before memory was whole."""
    return slot in self.known


# --- mail of which all was heard ------------------------------------------------------------------


def test_an_orphan_of_a_plain_expunge_is_removed(run: Story) -> None:
    slot = run.added()
    run.settle()
    run.expunge(slot, Fate.LOST)
    run.goes(slot)


def test_both_rows_of_a_plain_double_expunge_wait_for_their_content_to_go(run: Story) -> None:
    """Either delete may have meant either row: both sessions may have meant one."""
    both = run.message_with_copy()
    for slot in both:
        run.expunge(slot, Fate.LOST)
        run.world.pass_time(MILLISECOND)
    for slot in both:
        run.stays(slot, Kind.AMBIGUOUS_RANGE_DELETE)


def test_the_row_that_survives_the_expunge_of_its_copy_is_kept_and_reported(run: Story) -> None:
    first, copy = run.message_with_copy()
    run.expunge(copy)
    run.stays(first, Kind.AMBIGUOUS_RANGE_DELETE)


def planted(run: Story) -> tuple[Slot, Slot]:
    """A row, and one of its message at a UID that the truth never had."""
    slot = run.added()
    run.world.plant(slot, 7, 0)
    return slot, list(run.world.slots)[-1]


def test_a_row_at_a_uid_that_the_truth_never_had_is_removed(run: Story) -> None:
    slot, wrong = planted(run)
    run.stays(wrong)  # no delete was heard of: it may be on its way
    run.goes(wrong)
    assert run.is_there(slot)


def test_our_own_removal_of_a_wrong_row_says_nothing_of_a_message_that_gets_its_uid_later(
    run: Story,
) -> None:
    _slot, wrong = planted(run)
    run.goes(wrong, looks=2)
    run.world.slots[wrong] = time_uuid(run.world.now, 77)
    run.world.messages.append(run.world.slots[wrong])
    run.world.re_add(wrong, 0, Fate.PROMPT)
    run.settle()
    run.expunge(run.copied(wrong))
    run.stays(wrong, Kind.AMBIGUOUS_RANGE_DELETE)


@pytest.mark.parametrize("fate", [Fate.PROMPT, Fate.LOST], ids=["both heard", "one lost"])
def test_two_sessions_that_expunge_the_copy_do_not_prove_that_the_first_was_meant(
    run: Story, fate: Fate
) -> None:
    """Whether or not the listing has lost one of their deletes."""
    first, copy = run.message_with_copy()
    for each in (fate, Fate.PROMPT):
        run.expunge(copy, each)
        run.world.pass_time(20 * MILLISECOND)
    run.stays(first, Kind.AMBIGUOUS_RANGE_DELETE)


@pytest.mark.parametrize("heard", [True, False], ids=["all but the copy", "nothing"])
def test_a_look_before_the_copy_and_its_expunge_are_heard_of_judges_nothing(
    run: Story, *, heard: bool
) -> None:
    first = run.added()
    run.world.pass_time((3 if heard else 1) * CLIMATE.delay)
    run.expunge(run.copied(first))
    run.world.pass_time(SECOND)
    run.look_at(first)
    assert run.is_there(first)


def test_an_expunge_of_a_copy_by_a_slower_clock_does_not_prove_that_the_first_was_meant(
    run: Story,
) -> None:
    first = run.added()
    run.settle()
    run.expunge(run.copied(first), clock=-CLIMATE.skew)
    run.stays(first)


def test_a_message_that_came_back_is_judged_by_the_deletes_since_then(run: Story) -> None:
    """It was moved away and back: what took its old row says nothing of the new one."""
    old = run.added()
    run.settle()
    run.expunge(old)
    run.settle()
    run.settle()
    new = run.copied(old)
    run.settle()
    run.expunge(new, Fate.LOST)
    run.goes(new)


def test_a_row_older_than_the_memory_of_its_message_was_not_never_in_the_truth(run: Story) -> None:
    old = time_uuid(run.world.now - 1000 * SECOND, 77)
    run.world.messages.append(old)
    first = run.added(old)
    run.world.pass_time(SECOND)
    run.expunge(run.added(old))
    run.settle()
    run.world.events.clear()  # all this was before change capture was turned on
    run.look_later(run.added(old))
    run.stays(first)


def test_a_row_that_names_a_wrong_message_is_judged_by_what_its_uid_once_held_too(
    run: Story,
) -> None:
    other = run.added()
    first, copy = run.message_with_copy()
    wrong: dict[str, Value] = {"messageid": run.world.slots[other]}
    run.world.projection.apply(Update(first.key, run.world.now, wrong))
    run.expunge(copy)
    run.stays(first)


def test_looks_within_one_delay_are_not_several_attempts(run: Story) -> None:
    slot = run.added()
    run.settle()
    run.world.expunge(slot, 0, Fate.PROMPT, Fate.LOST)  # the projection's tombstone is young
    for _ in range(4):
        run.world.pass_time(SECOND)
        run.look_at(slot)
    run.look_later(slot, times=3)
    finding = run.finding(slot)
    assert finding is None or finding.state is not State.STUCK
    assert run.is_there(slot)


# --- mail that is older than the reconciler, and events that were lost ----------------------------


def old_message_read(run: Story) -> Slot:
    """A row of a message from before watching began, of which a look has read all there is."""
    first = run.added(run.world.old_message())
    listing_is_read(run)
    run.look_later(first)
    run.world.pass_time(SECOND)
    return first


def listing_is_read(run: Story) -> None:
    """As by a sweep: there is no other row of which nobody has heard."""
    watching = run.kept.lineage.watching()
    assert watching is not None
    run.kept.lineage.mark_listed(run.world.now, watching.since)
    run.world.pass_time(2 * CLIMATE.delay)


def events_are_lost(run: Story) -> None:
    """That is known: memory begins anew, and the listing is read again."""
    run.world.pass_time(SECOND)
    run.kept.lose_events()
    listing_is_read(run)


@RULES.kept_by(LineageRecorder, "rows", nothing_remembered)
def test_an_orphan_of_old_mail_that_was_read_while_watching_is_removed(run: Story) -> None:
    first = old_message_read(run)
    run.expunge(first, Fate.LOST)
    run.goes(first)


def test_an_orphan_of_old_mail_that_was_never_read_is_kept(run: Story) -> None:
    first = run.added(run.world.old_message())
    run.settle()
    run.expunge(first, Fate.LOST)
    run.stays(first, Kind.AMBIGUOUS_RANGE_DELETE)


@RULES.kept_by(memory, "complete_at", remembered_whenever_read)
def test_what_was_read_before_a_known_loss_of_events_proves_nothing(run: Story) -> None:
    first = old_message_read(run)
    copy = run.copied(first)
    run.expunge(copy)
    events_are_lost(run)
    run.expunge(copy)  # another session's: of this delete is heard
    run.stays(first, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)


@RULES.kept_by(LineageRecorder, "_outdated", never_outdated)
def test_what_is_read_after_a_known_loss_of_events_counts_anew(run: Story) -> None:
    first = old_message_read(run)
    events_are_lost(run)
    run.look_later(first)
    run.world.pass_time(SECOND)
    run.expunge(first, Fate.LOST)
    run.goes(first)


def test_a_later_row_of_the_message_does_not_make_memory_whole_across_a_loss(run: Story) -> None:
    first = old_message_read(run)
    run.expunge(run.copied(first))
    events_are_lost(run)
    third = run.copied(first)
    run.look_later(third)
    for fate in (Fate.PROMPT, Fate.LOST):  # heard after the loss: more than the third row's own
        run.world.pass_time(SECOND)
        run.expunge(third, fate)
    run.stays(first, looks=2)


@RULES.kept_by(Memory, "holds", whatever_is_known)
def test_a_sweep_says_nothing_of_a_row_that_the_truth_had_lost_before_it(run: Story) -> None:
    """It was lost with another of which nobody has heard, and that one is expunged now."""
    first = old_message_read(run)
    second, third = run.copied(first), run.copied(first)
    run.expunge(third)
    events_are_lost(run)
    run.settle()
    watching = run.kept.lineage.watching()
    assert watching is not None
    run.kept.lineage.mark_swept(run.world.now, watching.since)
    run.settle()
    run.expunge(second)
    run.stays(first, looks=2)


def test_an_event_from_before_a_loss_does_not_make_a_row_one_that_was_read_since(
    run: Story,
) -> None:
    first = run.added(run.world.old_message())
    run.world.pass_time(SECOND)
    heard = len(run.world.events)
    run.expunge(run.copied(first))
    run.world.pass_time(SECOND)
    del run.world.events[heard:]
    run.look_later(first)  # its insert is heard; its message's truth partition is empty by then
    events_are_lost(run)
    run.look_later(run.copied(first))
    run.stays(first, looks=2)


def test_a_partition_delete_that_comes_round_says_nothing_of_rows_that_came_since(
    run: Story,
) -> None:
    message = run.world.old_message()
    run.world.purge(message, 0)  # nobody remembers it: it is looked at again one delay later
    run.world.pass_time(CLIMATE.delay + CLIMATE.window)
    look_at_events(run)
    assert [wake.source for _, wake in run.kept.published] == [message]
    run.world.pass_time(SECOND)
    first, copy = run.added(message), run.added(message)
    run.world.pass_time(CLIMATE.delay - 2 * SECOND)
    run.look_at(first)
    run.expunge(copy)
    run.world.pass_time(2 * SECOND)
    look_at_events(run)
    assert run.kept.published == []
    run.stays(first, looks=2)


def look_at_events(run: Story) -> None:
    """A batch of nothing but what has settled or come round."""
    run.execute(run.batch_of([]))


# --- each rule that a test holds by, broken -------------------------------------------------------


@pytest.mark.parametrize("broken", RULES, ids=str)
def test_a_broken_rule_of_evidence_is_noticed(
    broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken.is_noticed(monkeypatch)


def test_three_rules_stand_between_a_partition_delete_that_comes_round_and_later_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is remembered as it comes first; names no row of later; and a read has found the row."""
    holds = test_a_partition_delete_that_comes_round_says_nothing_of_rows_that_came_since
    monkeypatch.setattr(LineageRecorder, "partition_deletes", echoed_deletes_remembered)
    monkeypatch.setattr(evidence, "_oldest", lambda *_: 0)
    holds(Story())
    Broken(Memory, "ended", lambda *_: -(2**63), holds).is_noticed(monkeypatch)


def test_two_rules_stand_between_an_expunge_by_a_slower_clock_and_the_first_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each alone is enough: the copy is as good as gone, or accounts for its own delete."""
    holds = test_an_expunge_of_a_copy_by_a_slower_clock_does_not_prove_that_the_first_was_meant
    monkeypatch.setattr(seen, "outlived_its_delete", lambda truth, memory, delay: False)
    holds(Story())
    lost_rows_alone = lambda of, since, delay: bool(evidence._lost(of) - {of.slot})  # noqa: E731
    Broken(evidence, "_others_lost", lost_rows_alone, holds).is_noticed(monkeypatch)
