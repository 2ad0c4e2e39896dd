"""What is decided of a row of no known message where all of the truth is remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Action, State
from reconcilers.words.model import Kind, LookAgain, Repair, Row, Slot
from tests.builders.examining import Stream, kind_of, stream
from tests.builders.judging import verdict
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MAILBOX,
    NOW,
    SECOND,
    SLOT,
    partial,
    seen,
)
from tests.contract.making import a_finding


def test_an_orphan_that_names_no_message_goes_where_the_whole_truth_is_remembered() -> None:
    """It rests on memory; and what nobody has found before is judged at the next look only."""
    orphan = replace(seen(partial(flagseen=True), consulted=frozenset()), swept=True)
    answer = verdict(orphan)
    assert isinstance(answer, Repair)
    assert answer.rests_on_memory
    assert answer.sentence == (
        f"messages: mailbox {MAILBOX} UID 7 is of no message:"
        " the whole truth is remembered, and has none here"
    )
    assert isinstance(verdict(replace(orphan, suspected=None)), LookAgain)
    assert isinstance(verdict(replace(orphan, suspected=Kind.UNRESOLVED)), LookAgain)


def swept_stream(*, actual: Row | None = None) -> Stream:
    """All of the truth is remembered, and it has no message."""
    one = stream(actual=actual)
    one.lineage.watch_from(LONG_AGO)
    one.lineage.mark_swept(LONG_AGO + SECOND, LONG_AGO)
    return one


def test_a_row_that_was_deleted_is_right_where_the_whole_truth_is_remembered() -> None:
    one = swept_stream()
    outcome = one.settle(Kind.UNRESOLVED, sources=frozenset())
    assert outcome.finding is None
    assert one.finding is None


def test_a_row_of_no_message_is_removed_where_the_whole_truth_is_remembered() -> None:
    one = swept_stream(actual=partial(flagseen=True))
    outcome = one.settle(Kind.EXTRA_ROW, sources=frozenset())
    assert (outcome.action, kind_of(outcome)) == (Action.REPAIR, Kind.EXTRA_ROW)
    assert len(one.tables.applied) == 1


def test_memory_that_began_after_the_sweep_is_not_all_of_the_truth() -> None:
    one = swept_stream(actual=partial(flagseen=True))
    one.lineage.watch_from(LONG_AGO + 2 * SECOND)
    outcome = one.settle(Kind.EXTRA_ROW, sources=frozenset())
    assert (outcome.action, kind_of(outcome)) == (Action.REPORT, Kind.UNRESOLVED)


@pytest.mark.parametrize("place", [SLOT, FAMILY.whole_group(MAILBOX)], ids=["row", "mailbox"])
def test_nor_is_it_where_a_row_cannot_be_read(place: Slot) -> None:
    one = swept_stream(actual=partial(flagseen=True))
    one.journal.put(a_finding(FAMILY, place, kind=Kind.UNREADABLE, state=State.REPORTED))
    outcome = one.settle(Kind.EXTRA_ROW, sources=frozenset())
    assert (outcome.action, kind_of(outcome)) == (Action.REPORT, Kind.UNRESOLVED)
    assert not one.tables.applied


def test_what_has_come_since_the_slice_was_admitted_is_not_known() -> None:
    """A slice of many suspects takes a while: what is confirmed last counts from its beginning."""
    one = swept_stream(actual=partial(flagseen=True, at=NOW - 2 * DELAY))
    admitted = Admission(frontier=NOW - 2 * DELAY)
    outcome = one.settle(Kind.EXTRA_ROW, admitted, sources=frozenset())
    assert outcome.action is Action.LOOK_AGAIN
    assert not one.tables.applied
    one.settle(Kind.EXTRA_ROW, replace(admitted, frontier=NOW), sources=frozenset())
    assert len(one.tables.applied) == 1
