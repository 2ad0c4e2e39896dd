"""Evidence on an installation with a past: deletes that nobody heard, truths of yesterday, content.

The runs of `test_evidence`, with one thing more: the content that James keeps of a message. He
deletes it some time after the truth's last row of the message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconcilers.declared.family import Family
from reconcilers.rows import evidence, memory
from reconcilers.rows import seen as seen_module
from reconcilers.rows.memory import Memory, Watching
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import Refused
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot
from streaming.steps.confirm import Confirmer
from streaming.steps.contents import Contents
from tests.builders.slots import mailbox_of, uid_of
from tests.property.cells import Delete
from tests.property.mail import FAMILY, MAILBOXES, SECOND, Fate, World
from tests.property.races import Choice, Run
from tests.property.test_evidence import (
    a_run,
    added,
    expunge,
    is_there,
    kind_reported,
    look,
    message_with_copy,
    settle,
)

WITH_CONTENT = replace(FAMILY, truth=replace(FAMILY.truth, contents=("messagev2", "messagev3")))


@dataclass
class JamesContent:
    """What James has content of: what lives, and what his listener has not come to yet."""

    world: World
    not_deleted_yet: set[KeyValue] = field(default_factory=set)
    refused: bool = False

    def having_content(self, sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        if self.refused:
            raise Refused("no SELECT permission on messagev2")
        return {
            each for each in sources if each in self.not_deleted_yet or self.world.truth_rows(each)
        }


def a_run_with_content() -> tuple[Run, JamesContent]:
    run = a_run()
    content = JamesContent(run.world)
    run.confirmer = partial(_confirmer, content)  # type: ignore[assignment]
    return run, content


def _confirmer(content: JamesContent, *parts: object, **rules: object) -> Confirmer:
    plain = Confirmer(*parts, **rules)  # type: ignore[arg-type]
    asked = Contents(WITH_CONTENT, plain.tables, content, plain.delay)
    return replace(plain, contents=asked)


def look_twice(run: Run, slot: Slot) -> None:
    """An absence without a delete is judged when it is a delay old."""
    for _ in range(2):
        settle(run)
        look(run, slot)


# --- absent without a delete (A8) ----------------------------------------------------------------


def test_what_the_truth_lost_without_a_delete_is_held() -> None:
    run = a_run()
    yesterday = deepcopy(run.world.truth)
    slot = added(run)
    settle(run)
    look(run, slot)
    run.world.truth = yesterday
    look_twice(run, slot)
    assert is_there(run, slot)
    assert kind_reported(run, slot) is Kind.ABSENT_WITHOUT_DELETE


def test_a_delete_from_before_the_row_was_written_is_none_of_it() -> None:
    """The message was moved away and came back; then the truth was restored to before that."""
    run = a_run()
    first = added(run)
    message = run.world.slots[first]
    settle(run)
    expunge(run, first)
    settle(run)
    expunge(run, first)  # by another session, which came late
    settle(run)
    yesterday = deepcopy(run.world.truth)
    back = added(run, message)
    settle(run)
    look(run, back)
    run.world.truth = yesterday
    look_twice(run, back)
    assert is_there(run, back)
    assert kind_reported(run, back) is Kind.ABSENT_WITHOUT_DELETE


STEP = st.tuples(*[st.integers(0, 60)] * 3)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, max_size=25), st.lists(STEP, max_size=25))
@example([(0, 0, 0)], [(2, 0, 28), (41, 0, 1)])  # its delete took the row that came back, too
def test_a_truth_of_yesterday_takes_no_row_that_its_user_kept(
    before: list[Choice], since: list[Choice]
) -> None:
    run = a_run()
    run.play(before)
    settle(run)
    yesterday = deepcopy(run.world.truth)
    run.play(since)
    run.peace()
    run.kept.planned.clear()
    run.world.truth = yesterday
    for _ in range(3):
        run.round()
    run.only_expunged_rows_were_removed()


# --- something was missed (A3) -------------------------------------------------------------------


def copied_unheard(run: Run) -> Slot:
    """A message and its copy are made while nothing is heard; then the copy is expunged."""
    first, copy = message_with_copy(run)
    settle(run)
    run.world.events.clear()
    expunge(run, copy)
    return first


def test_a_delete_of_a_message_of_which_no_row_is_known_proves_nothing() -> None:
    run = a_run()
    first = copied_unheard(run)
    look_twice(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.AMBIGUOUS_RANGE_DELETE


def expunged_after_a_copy_unheard(run: Run) -> Slot:
    """`doctor --off`, a copy within a mailbox, `doctor --fix`, the copy is expunged."""
    first = added(run)
    settle(run)
    look(run, first)
    copy = added(run, run.world.slots[first])
    settle(run)
    run.kept.lose_events()
    settle(run)
    expunge(run, copy)
    return first


def test_nothing_is_removed_after_capture_was_off_for_a_copy() -> None:
    run = a_run()
    first = expunged_after_a_copy_unheard(run)
    look_twice(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.AMBIGUOUS_RANGE_DELETE


def test_nor_when_its_content_is_gone_with_the_truth() -> None:
    run, _ = a_run_with_content()
    first = expunged_after_a_copy_unheard(run)
    look_twice(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.CONTENT_LOST


# --- content that is gone (M3) -------------------------------------------------------------------


def old_mail_expunged(run: Run) -> Slot:
    """Older than the stream, which has never read it; the listing's delete is lost."""
    slot = added(run, run.world.old_message())
    settle(run)
    run.world.events.clear()
    expunge(run, slot, Fate.LOST)
    return slot


def test_old_mail_is_removed_once_its_content_is_gone_and_not_before() -> None:
    run, content = a_run_with_content()
    slot = old_mail_expunged(run)
    content.not_deleted_yet.add(run.world.slots[slot])
    look_twice(run, slot)
    assert is_there(run, slot)
    assert kind_reported(run, slot) is Kind.AMBIGUOUS_RANGE_DELETE
    content.not_deleted_yet.clear()
    look_twice(run, slot)
    assert not is_there(run, slot)


def test_a_message_that_lives_in_another_mailbox_has_its_content() -> None:
    run, _ = a_run_with_content()
    message = run.world.old_message()
    run.world.append(MAILBOXES[1], message, 0, Fate.PROMPT)
    slot = added(run, message)
    settle(run)
    run.world.events.clear()
    expunge(run, slot, Fate.LOST)
    look_twice(run, slot)
    assert is_there(run, slot)
    assert kind_reported(run, slot) is Kind.AMBIGUOUS_RANGE_DELETE


def test_a_row_that_its_user_kept_is_kept_where_its_content_is_lost() -> None:
    """One of two copies is expunged, the truth loses both, and James deletes the content."""
    run, _ = a_run_with_content()
    first, copy = message_with_copy(run)
    settle(run)
    expunge(run, copy)
    look_twice(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.CONTENT_LOST
    finding = run.finding(first)
    assert finding is not None
    assert str(run.world.slots[first]) in finding.sentence


def test_content_alone_is_no_evidence() -> None:
    """Truth and content were restored from an older copy: no delete was heard of anything."""
    run, _ = a_run_with_content()
    yesterday = deepcopy(run.world.truth)
    slot = added(run)
    settle(run)
    look(run, slot)
    run.world.truth = yesterday
    look_twice(run, slot)
    assert is_there(run, slot)
    assert kind_reported(run, slot) is Kind.ABSENT_WITHOUT_DELETE


def test_content_that_may_not_be_read_settles_nothing_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run, content = a_run_with_content()
    slot = old_mail_expunged(run)
    content.refused = True
    look_twice(run, slot)
    assert is_there(run, slot)
    assert kind_reported(run, slot) is Kind.AMBIGUOUS_RANGE_DELETE
    assert "no SELECT permission on messagev2" in caplog.text


def test_where_only_the_truth_was_read_the_listing_may_have_had_another_row() -> None:
    """Its user has expunged that one; the truth had lost it long before anything was watched."""
    run = a_run()
    first = added(run, message := run.world.old_message())
    other = added(run, message)
    lost = (message, mailbox_of(other), uid_of(other))
    run.world.pass_time(SECOND)
    run.world.truth.apply(Delete(lost, run.world.now))
    assert len(run.world.truth_rows(message)) == 1
    settle(run)
    run.world.events.clear()
    run.kept.taken = 0
    run.kept.lose_events()
    settle(run)
    look(run, first)
    run.world.pass_time(SECOND)
    expunge(run, other)
    for _ in range(2):
        settle(run)
        look(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.AMBIGUOUS_RANGE_DELETE


# --- the rules, broken on purpose ----------------------------------------------------------------


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


BROKEN: tuple[tuple[object, str, object, Callable[[], None]], ...] = (
    (evidence, "heard_since_written", any_delete, test_content_alone_is_no_evidence),
    (
        evidence,
        "heard_since_written",
        any_delete,
        test_a_delete_from_before_the_row_was_written_is_none_of_it,
    ),
    (
        seen_module,
        "took",
        nothing_taken,
        test_a_truth_of_yesterday_takes_no_row_that_its_user_kept,
    ),
    (
        Memory,
        "contradicted",
        property(whatever_is_deleted),
        test_a_delete_of_a_message_of_which_no_row_is_known_proves_nothing,
    ),
    (
        memory,
        "_listing_known_at",
        known_at_once,
        test_where_only_the_truth_was_read_the_listing_may_have_had_another_row,
    ),
    (
        evidence,
        "_ended_at",
        lambda seen, other, unknown, delay: 0,
        test_a_row_that_its_user_kept_is_kept_where_its_content_is_lost,
    ),
)


@pytest.mark.parametrize(
    ("where", "name", "rule", "holds"),
    BROKEN,
    ids=[f"{each[1]}-{each[3].__name__}" for each in BROKEN],
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
