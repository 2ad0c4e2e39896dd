"""Evidence on an installation with a past: deletes that nobody heard, truths of yesterday, content.

The stories of `test_evidence`, with one thing more: the content that James keeps of a message. He
deletes it some time after the truth's last row of the message.
"""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconcilers.declared.family import Family
from reconcilers.rows import evidence, memory
from reconcilers.rows import seen as seen_module
from reconcilers.rows.memory import Memory, Watching
from reconcilers.rows.seen import Seen
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot
from tests.property.mail import MAILBOXES, SECOND, Fate
from tests.property.races import Choice
from tests.property.stories import Broken, BrokenRules, Story

# --- the rules, broken on purpose ----------------------------------------------------------------

RULES = BrokenRules()


def any_delete(family: Family, seen: Seen, delay: Micros) -> bool:
    """Whenever a delete was heard, it could have taken any row; so could one that was not."""
    return True


def nothing_taken(truth: Row, slot: Slot, memory: Memory, delay: Micros) -> frozenset[Micros]:
    """A row that came back accounts for no delete."""
    return frozenset()


def whatever_is_deleted(self: Memory) -> bool:
    """A delete of a message of which no row is known is nothing special."""
    return False


def known_at_once(slot: Slot, source: KeyValue, watching: Watching | None) -> Micros:
    """What only the listing has is taken for known."""
    return 0


# --- absent without a delete (A8) ----------------------------------------------------------------


@RULES.kept_by(evidence, "heard_since_written", any_delete)
def test_content_alone_is_no_evidence_of_what_the_truth_lost_without_a_delete(run: Story) -> None:
    """Truth and content were restored from an older copy: no delete was heard of anything."""
    run.with_content()
    yesterday = deepcopy(run.world.truth)
    slot = run.added_and_seen()
    run.world.truth = yesterday
    run.stays(slot, Kind.ABSENT_WITHOUT_DELETE, looks=2)


@RULES.kept_by(evidence, "heard_since_written", any_delete)
def test_a_delete_from_before_the_row_was_written_is_none_of_it(run: Story) -> None:
    """The message was moved away and came back; then the truth was restored to before that."""
    first = run.added()
    for _ in range(2):  # the second is of another session, and came late
        run.settle()
        run.expunge(first)
    run.settle()
    yesterday = deepcopy(run.world.truth)
    back = run.copied(first)
    run.look_later(back)
    run.world.truth = yesterday
    run.stays(back, Kind.ABSENT_WITHOUT_DELETE, looks=2)


STEP = st.tuples(*[st.integers(0, 60)] * 3)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, max_size=25), st.lists(STEP, max_size=25))
@example([(0, 0, 0)], [(2, 0, 28), (41, 0, 1)])  # its delete took the row that came back, too
def test_a_truth_of_yesterday_takes_no_row_that_its_user_kept(
    before: list[Choice], since: list[Choice]
) -> None:
    run = Story()
    run.play(before)
    run.settle()
    yesterday = deepcopy(run.world.truth)
    run.play(since)
    run.peace()
    run.kept.planned.clear()
    run.world.truth = yesterday
    for _ in range(3):
        run.round()
    run.only_expunged_rows_were_removed()


@RULES.kept_by(seen_module, "took", nothing_taken)
def a_truth_of_yesterday(_: Story) -> None:
    test_a_truth_of_yesterday_takes_no_row_that_its_user_kept()


# --- something was missed (A3) -------------------------------------------------------------------


@RULES.kept_by(Memory, "contradicted", property(whatever_is_deleted))
def test_a_delete_of_a_message_of_which_no_row_is_known_proves_nothing(run: Story) -> None:
    """A message and its copy are made while nothing is heard; then the copy is expunged."""
    first, copy = run.message_with_copy()
    run.world.events.clear()
    run.expunge(copy)
    run.stays(first, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [(False, Kind.AMBIGUOUS_RANGE_DELETE), (True, Kind.CONTENT_LOST)],
    ids=["content not asked for", "content gone with the truth"],
)
def test_nothing_is_removed_after_capture_was_off_for_a_copy(
    run: Story, kind: Kind, *, asked: bool
) -> None:
    """`doctor --off`, a copy within a mailbox, `doctor --fix`, the copy is expunged."""
    if asked:
        run.with_content()
    first = run.added_and_seen()
    copy = run.copied(first)
    run.settle()
    run.kept.lose_events()
    run.settle()
    run.expunge(copy)
    run.stays(first, kind, looks=2)


# --- content that is gone (M3) -------------------------------------------------------------------


def old_mail_expunged(run: Story, *, lives_elsewhere: bool = False) -> Slot:
    """Older than the stream, which has never read it; the listing's delete is lost."""
    message = run.world.old_message()
    if lives_elsewhere:
        run.world.append(MAILBOXES[1], message, 0, Fate.PROMPT)
    slot = run.added(message)
    run.settle()
    run.world.events.clear()
    run.expunge(slot, Fate.LOST)
    return slot


def test_old_mail_is_removed_once_its_content_is_gone_and_not_before(run: Story) -> None:
    content = run.with_content()
    slot = old_mail_expunged(run)
    content.not_deleted_yet.add(run.world.slots[slot])
    run.stays(slot, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)
    content.not_deleted_yet.clear()
    run.goes(slot, looks=2)


def test_a_message_that_lives_in_another_mailbox_has_its_content(run: Story) -> None:
    run.with_content()
    slot = old_mail_expunged(run, lives_elsewhere=True)
    run.stays(slot, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)


@RULES.kept_by(evidence, "_ended_at", lambda seen, other, unknown, delay: 0)
def test_a_row_that_its_user_kept_is_kept_where_its_content_is_lost(run: Story) -> None:
    """One of two copies is expunged, the truth loses both, and James deletes the content."""
    run.with_content()
    first, copy = run.message_with_copy()
    run.expunge(copy)
    run.stays(first, Kind.CONTENT_LOST, looks=2)
    finding = run.finding(first)
    assert finding is not None
    assert str(run.world.slots[first]) in finding.sentence


def test_content_that_may_not_be_read_settles_nothing_and_is_told_once(
    run: Story, caplog: pytest.LogCaptureFixture
) -> None:
    run.with_content().refused = True
    slot = old_mail_expunged(run)
    run.stays(slot, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)
    assert "no SELECT permission on messagev2" in caplog.text


@RULES.kept_by(memory, "_listing_known_at", known_at_once)
def test_where_only_the_truth_was_read_the_listing_may_have_had_another_row(run: Story) -> None:
    """Its user has expunged that one; the truth had lost it long before anything was watched."""
    first = run.added(message := run.world.old_message())
    other = run.added(message)
    run.world.pass_time(SECOND)
    run.lose_true(other)
    assert len(run.world.truth_rows(message)) == 1
    run.settle()
    run.world.events.clear()
    run.kept.taken = 0
    run.kept.lose_events()
    run.look_later(first)
    run.world.pass_time(SECOND)
    run.expunge(other)
    run.stays(first, Kind.AMBIGUOUS_RANGE_DELETE, looks=2)


# --- each rule that a test holds by, broken ------------------------------------------------------


@pytest.mark.parametrize("broken", RULES, ids=str)
def test_a_broken_rule_is_noticed(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    broken.is_noticed(monkeypatch)
