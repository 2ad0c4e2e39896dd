"""Which row did its user delete? The truth's range delete takes every UID of a message.

The surviving row of a copy within a mailbox is kept and reported; a plain expunge is repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.rows import evidence, memory, seen
from reconcilers.rows.deletes import Deletes
from reconcilers.rows.finding import State
from reconcilers.rows.memory import Entry, Memory, Watching, memory_of
from reconcilers.words.model import Kind, Micros, Slot, Value, Wake
from streaming.steps.look_state import LookState
from streaming.steps.record_lineage import LineageRecorder
from tests.property.cells import Update
from tests.property.mail import MAILBOXES, MILLISECOND, SECOND, Climate, Fate, time_uuid
from tests.property.races import Run

CLIMATE = Climate(45 * SECOND, window=6 * SECOND, skew=300 * MILLISECOND, late=31 * SECOND)
INBOX = MAILBOXES[0]


def a_run() -> Run:
    run = Run(CLIMATE)
    run.world.pass_time(SECOND)
    return run


def added(run: Run, message: UUID | None = None, fate: Fate = Fate.PROMPT) -> Slot:
    """Append a message to the inbox, or copy it there."""
    run.world.append(INBOX, message, 0, fate)
    return list(run.world.slots)[-1]


def message_with_copy(run: Run) -> tuple[Slot, Slot]:
    first = added(run)
    run.world.pass_time(SECOND)
    return first, added(run, run.world.slots[first])


def expunge(run: Run, slot: Slot, fate: Fate = Fate.PROMPT, clock: int = 0) -> None:
    run.world.expunge(slot, clock, fate, Fate.PROMPT)


def look(run: Run, slot: Slot) -> None:
    run.execute(run.batch_of([slot]))


def is_there(run: Run, slot: Slot) -> bool:
    return run.row(slot) is not None


def kind_reported(run: Run, slot: Slot) -> Kind | None:
    finding = run.finding(slot)
    return finding.kind if finding is not None and finding.state is State.REPORTED else None


def settle(run: Run) -> None:
    """Everything arrives and is heard."""
    run.world.pass_time(3 * CLIMATE.delay)


def test_an_orphan_of_a_plain_expunge_is_removed() -> None:
    run = a_run()
    slot = added(run)
    settle(run)
    expunge(run, slot, Fate.LOST)
    settle(run)
    look(run, slot)
    assert not is_there(run, slot)


def test_both_rows_of_a_plain_double_expunge_wait_for_their_content_to_go() -> None:
    """Either delete may have meant either row: both sessions may have meant one."""
    run = a_run()
    first, copy = message_with_copy(run)
    settle(run)
    for slot in (first, copy):
        expunge(run, slot, Fate.LOST)
        run.world.pass_time(MILLISECOND)
    settle(run)
    for slot in (first, copy):
        look(run, slot)
        assert is_there(run, slot)
        assert kind_reported(run, slot) is Kind.AMBIGUOUS_RANGE_DELETE


def test_the_row_that_survives_the_expunge_of_its_copy_is_kept_and_reported() -> None:
    run = a_run()
    first, copy = message_with_copy(run)
    settle(run)
    expunge(run, copy)
    settle(run)
    look(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.AMBIGUOUS_RANGE_DELETE


def test_a_row_at_a_uid_that_the_truth_never_had_is_removed() -> None:
    run = a_run()
    slot = added(run)
    run.world.plant(slot, 7, 0)
    wrong = list(run.world.slots)[-1]
    settle(run)
    look(run, wrong)
    assert is_there(run, wrong)  # no delete was heard of: it may be on its way
    settle(run)
    look(run, wrong)
    assert not is_there(run, wrong)
    assert is_there(run, slot)


def test_our_own_removal_of_a_wrong_row_says_nothing_of_a_message_that_gets_its_uid_later() -> None:
    run = a_run()
    run.world.plant(added(run), 7, 0)
    wrong = list(run.world.slots)[-1]
    for _ in range(2):
        settle(run)
        look(run, wrong)
    assert not is_there(run, wrong)
    run.world.slots[wrong] = time_uuid(run.world.now, 77)
    run.world.messages.append(run.world.slots[wrong])
    run.world.re_add(wrong, 0, Fate.PROMPT)
    settle(run)
    expunge(run, added(run, run.world.slots[wrong]))
    settle(run)
    look(run, wrong)
    assert is_there(run, wrong)
    assert kind_reported(run, wrong) is Kind.AMBIGUOUS_RANGE_DELETE


def test_two_sessions_that_expunge_the_copy_do_not_prove_that_the_first_was_meant() -> None:
    run = a_run()
    first, copy = message_with_copy(run)
    settle(run)
    expunge(run, copy)
    run.world.pass_time(20 * MILLISECOND)
    expunge(run, copy)
    settle(run)
    look(run, first)
    assert is_there(run, first)


def test_a_look_before_the_copy_and_its_expunge_are_heard_of_judges_nothing() -> None:
    run = a_run()
    first = added(run)
    settle(run)
    copy = added(run, run.world.slots[first])
    expunge(run, copy)
    run.world.pass_time(SECOND)
    look(run, first)
    assert is_there(run, first)


def test_a_look_before_anything_of_the_message_is_heard_judges_nothing() -> None:
    run = a_run()
    first = added(run)
    run.world.pass_time(CLIMATE.delay)
    expunge(run, added(run, run.world.slots[first]))
    run.world.pass_time(SECOND)
    look(run, first)
    assert is_there(run, first)


def test_an_expunge_of_a_copy_by_a_slower_clock_does_not_prove_that_the_first_was_meant() -> None:
    run = a_run()
    first = added(run)
    settle(run)
    copy = added(run, run.world.slots[first])
    expunge(run, copy, clock=-CLIMATE.skew)
    settle(run)
    look(run, first)
    assert is_there(run, first)


def test_a_row_older_than_the_memory_of_its_message_was_not_never_in_the_truth() -> None:
    run = a_run()
    old = time_uuid(run.world.now - 1000 * SECOND, 77)
    run.world.messages.append(old)
    first = added(run, old)
    run.world.pass_time(SECOND)
    expunge(run, added(run, old))
    settle(run)
    run.world.events.clear()  # all this was before change capture was turned on
    third = added(run, old)
    settle(run)
    look(run, third)
    settle(run)
    look(run, first)
    assert is_there(run, first)


def test_a_row_that_names_a_wrong_message_is_judged_by_what_its_uid_once_held_too() -> None:
    run = a_run()
    other = added(run)
    first, copy = message_with_copy(run)
    settle(run)
    wrong: dict[str, Value] = {"messageid": run.world.slots[other]}
    run.world.projection.apply(Update(first.key, run.world.now, wrong))
    expunge(run, copy)
    settle(run)
    look(run, first)
    assert is_there(run, first)


def test_a_memory_is_not_complete_across_a_known_loss_of_events() -> None:
    message = time_uuid(1000 * SECOND, 77)
    recorded, lost_until, deleted = 2000 * SECOND, 3000 * SECOND, 4000 * SECOND
    entry = Entry(message, Slot(INBOX, 7), in_truth=True, recorded_at=recorded)
    deletes = Deletes(frozenset({deleted}))
    memory = memory_of(Slot(INBOX, 7), message, [entry], deletes, {}, Watching(lost_until))
    assert not memory.complete


def test_looks_within_one_delay_are_not_several_attempts() -> None:
    run = a_run()
    slot = added(run)
    settle(run)
    run.world.expunge(slot, 0, Fate.PROMPT, Fate.LOST)  # the projection's tombstone is young
    for _ in range(4):
        run.world.pass_time(SECOND)
        look(run, slot)
    for _ in range(3):
        settle(run)
        look(run, slot)
    finding = run.finding(slot)
    assert finding is None or finding.state is not State.STUCK
    assert is_there(run, slot)


# --- mail that is older than the reconciler, and events that were lost ----------------------------


def old_message_read(run: Run) -> Slot:
    """A row of a message from before watching began, of which a look has read all there is."""
    first = added(run, run.world.old_message())
    listing_is_read(run)
    settle(run)
    look(run, first)
    run.world.pass_time(SECOND)
    return first


def listing_is_read(run: Run) -> None:
    """As by a sweep: there is no other row of which nobody has heard."""
    watching = run.kept.lineage.watching()
    assert watching is not None
    run.kept.lineage.mark_listed(run.world.now, watching.since)
    run.world.pass_time(2 * CLIMATE.delay)


def test_an_orphan_of_old_mail_that_was_read_while_watching_is_removed() -> None:
    run = a_run()
    first = old_message_read(run)
    expunge(run, first, Fate.LOST)
    settle(run)
    look(run, first)
    assert not is_there(run, first)


def test_an_orphan_of_old_mail_that_was_never_read_is_kept() -> None:
    run = a_run()
    first = added(run, run.world.old_message())
    settle(run)
    expunge(run, first, Fate.LOST)
    settle(run)
    look(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.AMBIGUOUS_RANGE_DELETE


def test_what_was_read_before_a_known_loss_of_events_proves_nothing() -> None:
    run = a_run()
    first = old_message_read(run)
    copy = added(run, run.world.slots[first])
    expunge(run, copy)
    run.world.pass_time(SECOND)
    run.kept.lose_events()
    listing_is_read(run)
    expunge(run, copy)  # another session's: of this delete is heard
    for _ in range(2):
        settle(run)
        look(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.AMBIGUOUS_RANGE_DELETE


def test_what_is_read_after_a_known_loss_of_events_counts_anew() -> None:
    run = a_run()
    first = old_message_read(run)
    run.kept.lose_events()
    listing_is_read(run)
    settle(run)
    look(run, first)
    run.world.pass_time(SECOND)
    expunge(run, first, Fate.LOST)
    settle(run)
    look(run, first)
    assert not is_there(run, first)


def test_a_later_row_of_the_message_does_not_make_memory_whole_across_a_loss() -> None:
    run = a_run()
    first = old_message_read(run)
    expunge(run, added(run, run.world.slots[first]))
    run.world.pass_time(SECOND)
    run.kept.lose_events()
    listing_is_read(run)
    third = added(run, run.world.slots[first])
    settle(run)
    look(run, third)
    for fate in (Fate.PROMPT, Fate.LOST):  # heard after the loss: more than the third row's own
        run.world.pass_time(SECOND)
        expunge(run, third, fate)
    for _ in range(2):
        settle(run)
        look(run, first)
    assert is_there(run, first)


def test_a_sweep_says_nothing_of_a_row_that_the_truth_had_lost_before_it() -> None:
    """It was lost with another of which nobody has heard, and that one is expunged now."""
    run = a_run()
    first = old_message_read(run)
    second, third = (added(run, run.world.slots[first]) for _ in range(2))
    expunge(run, third)
    run.world.pass_time(SECOND)
    run.kept.lose_events()
    listing_is_read(run)
    settle(run)
    watching = run.kept.lineage.watching()
    assert watching is not None
    run.kept.lineage.mark_swept(run.world.now, watching.since)
    settle(run)
    expunge(run, second)
    for _ in range(2):
        settle(run)
        look(run, first)
    assert is_there(run, first)


def test_an_event_from_before_a_loss_does_not_make_a_row_one_that_was_read_since() -> None:
    run = a_run()
    first = added(run, run.world.old_message())
    run.world.pass_time(SECOND)
    heard = len(run.world.events)
    expunge(run, added(run, run.world.slots[first]))
    run.world.pass_time(SECOND)
    del run.world.events[heard:]
    settle(run)
    look(run, first)  # its insert is heard; its message's truth partition is empty by then
    run.kept.lose_events()
    listing_is_read(run)
    third = added(run, run.world.slots[first])
    settle(run)
    look(run, third)
    for _ in range(2):
        settle(run)
        look(run, first)
    assert is_there(run, first)


def test_a_partition_delete_that_comes_round_says_nothing_of_rows_that_came_since() -> None:
    run = a_run()
    message = run.world.old_message()
    run.world.purge(message, 0)  # nobody remembers it: it is looked at again one delay later
    run.world.pass_time(CLIMATE.delay + CLIMATE.window)
    look_at_events(run)
    assert [wake.source for _, wake in run.kept.published] == [message]
    run.world.pass_time(SECOND)
    first = added(run, message)
    copy = added(run, message)
    run.world.pass_time(CLIMATE.delay - 2 * SECOND)
    look(run, first)
    expunge(run, copy)
    run.world.pass_time(2 * SECOND)
    look_at_events(run)
    assert run.kept.published == []
    for _ in range(2):
        settle(run)
        look(run, first)
    assert is_there(run, first)


def look_at_events(run: Run) -> None:
    """A batch of nothing but what has settled or come round."""
    run.execute(run.batch_of([]))


# --- the rules of evidence, broken on purpose -----------------------------------------------------


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


memory_complete_at = memory.complete_at
partition_deletes = LineageRecorder.partition_deletes


def whatever_is_known(self: Memory, slot: Slot) -> bool:
    """A row counts as one of whole memory though it was lost before memory was whole."""
    return slot in self.known


BROKEN: tuple[tuple[object, str, object, Callable[[], None]], ...] = (
    (
        LineageRecorder,
        "rows",
        nothing_remembered,
        test_an_orphan_of_old_mail_that_was_read_while_watching_is_removed,
    ),
    (
        memory,
        "complete_at",
        remembered_whenever_read,
        test_what_was_read_before_a_known_loss_of_events_proves_nothing,
    ),
    (
        Memory,
        "holds",
        whatever_is_known,
        test_a_sweep_says_nothing_of_a_row_that_the_truth_had_lost_before_it,
    ),
    (
        LineageRecorder,
        "_outdated",
        never_outdated,
        test_what_is_read_after_a_known_loss_of_events_counts_anew,
    ),
)


@pytest.mark.parametrize(
    ("where", "name", "rule", "holds"), BROKEN, ids=[name for _, name, _, _ in BROKEN]
)
def test_a_broken_rule_of_evidence_is_noticed(
    where: object,
    name: str,
    rule: object,
    holds: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(where, name, rule)
    with pytest.raises(AssertionError):
        holds()


def test_three_rules_stand_between_a_partition_delete_that_comes_round_and_later_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is remembered as it comes first; names no row of later; and a read has found the row."""
    holds = test_a_partition_delete_that_comes_round_says_nothing_of_rows_that_came_since
    monkeypatch.setattr(LineageRecorder, "partition_deletes", echoed_deletes_remembered)
    monkeypatch.setattr(evidence, "_oldest", lambda *_: 0)
    holds()
    monkeypatch.setattr(Memory, "ended", lambda *_: -(2**63))
    with pytest.raises(AssertionError):
        holds()


def test_two_rules_stand_between_an_expunge_by_a_slower_clock_and_the_first_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each alone is enough: the copy is as good as gone, or accounts for its own delete."""
    monkeypatch.setattr(seen, "outlived_its_delete", lambda truth, memory, delay: False)
    test_an_expunge_of_a_copy_by_a_slower_clock_does_not_prove_that_the_first_was_meant()
    lost_rows_alone = lambda of, since, delay: bool(evidence._lost(of) - {of.slot})  # noqa: E731
    monkeypatch.setattr(evidence, "_others_lost", lost_rows_alone)
    with pytest.raises(AssertionError):
        test_an_expunge_of_a_copy_by_a_slower_clock_does_not_prove_that_the_first_was_meant()
