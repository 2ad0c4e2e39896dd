"""What a person has accepted ends with its finding: a newer row of the listing asks again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.limits.gate import Admission
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import Action, State
from reconcilers.rows.memory import Entry
from reconcilers.sweep import lost_rows
from reconcilers.sweep.lost_rows import LostRow, LostRows
from reconcilers.words.model import Kind, Suspect
from reconcilers.words.waiting import Wait, Waiting
from streaming.steps.accepted_together import AcceptedTogether
from streaming.steps.outcome import Outcome
from tests.builders.examining import OPEN, Stream, became, examiner, stream
from tests.builders.permits import permit
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MESSAGE_ID,
    NOW,
    PROJECTION,
    SECOND,
    SLOT,
    row,
    truth,
)
from tests.fakes.checkpoints.lost_rows import MemoryLostRows

ASKS_AGAIN = (Action.REPORT, Kind.ABSENT_WITHOUT_DELETE)
TOO_MANY = Admission(repairs_wait=Waiting(Wait.BREAKER, "breaker repairs: too many"))


def removed_as_accepted() -> Stream:
    """An orphan that a person let be removed; it was."""
    one = stream(actual=row())
    one.lineage.remember([Entry(MESSAGE_ID, SLOT, True, LONG_AGO)])
    assert became(one.settle(Kind.EXTRA_ROW)) == ASKS_AGAIN
    one.accept()
    assert became(one.settle(Kind.EXTRA_ROW)) == (Action.REPAIR, Kind.EXTRA_ROW)
    assert len(one.tables.applied) == 1
    return one


def written_again(one: Stream) -> None:
    """The mail server writes the row once more, and the delay passes."""
    one.tables.rows[PROJECTION.name] = {SLOT: row(at=one.now + SECOND, modseq=99)}
    one.now += 2 * DELAY


def incomplete_for_one_look(one: Stream) -> None:
    one.tables.truths[MESSAGE_ID] = (truth(headercontent=None, internaldate=None),)
    assert one.settle(Kind.EXTRA_ROW).action is Action.REPORT
    one.tables.truths.clear()


def asks_again(one: Stream) -> bool:
    """Whether the row is only reported, without what was accepted for an older one."""
    looked = one.settle(Kind.EXTRA_ROW)
    return (
        became(looked) == ASKS_AGAIN
        and not one.open_finding.accepted
        and len(one.tables.applied) == 1
    )


@pytest.mark.parametrize("admission", [OPEN, TOO_MANY], ids=["tried", "held afterwards"])
def test_a_row_that_is_written_again_is_not_removed_by_the_old_acceptance(
    admission: Admission,
) -> None:
    one = removed_as_accepted()
    if admission is TOO_MANY:
        one.settle(Kind.EXTRA_ROW, admission)
        assert one.open_finding.state is State.HELD
    written_again(one)
    assert asks_again(one)
    assert one.ended == [State.SUPERSEDED]
    assert one.open_finding.found_at == one.now


def test_one_that_is_written_before_it_is_removed_asks_again() -> None:
    one = stream(actual=row())
    one.lineage.remember([Entry(MESSAGE_ID, SLOT, True, LONG_AGO)])
    assert became(one.settle(Kind.EXTRA_ROW)) == ASKS_AGAIN
    one.accept()
    one.tables.rows[PROJECTION.name] = {SLOT: row(at=one.now + SECOND, modseq=99)}
    one.now += 2 * DELAY
    assert became(one.settle(Kind.EXTRA_ROW)) == ASKS_AGAIN
    assert (one.ended, one.tables.applied) == ([State.SUPERSEDED], [])
    assert not one.open_finding.accepted
    one.accept()
    assert became(one.settle(Kind.EXTRA_ROW)) == (Action.REPAIR, Kind.EXTRA_ROW)


def test_nor_is_it_if_something_else_is_reported_first() -> None:
    one = removed_as_accepted()
    written_again(one)
    incomplete_for_one_look(one)
    assert one.ended == [State.SUPERSEDED]
    assert asks_again(one)


def test_nor_is_it_if_something_else_is_reported_before_it_is_written_again() -> None:
    one = removed_as_accepted()
    one.tables.rows.clear()
    incomplete_for_one_look(one)
    written_again(one)
    assert asks_again(one)


def test_what_is_accepted_again_is_removed() -> None:
    one = removed_as_accepted()
    written_again(one)
    assert asks_again(one)
    one.accept()
    assert became(one.settle(Kind.EXTRA_ROW)) == (Action.REPAIR, Kind.EXTRA_ROW)
    assert len(one.tables.applied) == 2


# --- accepted with many others


def look(one: Stream, together: AcceptedTogether) -> Outcome:
    """One look at `SLOT`, where ``together`` was accepted for many rows; the delay has passed."""
    one.now += 2 * DELAY
    alone = examiner(
        *(FAMILY, PROJECTION, one.tables, one.lineage, one.journal),
        publish=one.published.extend,
        clock=lambda: one.now,
    )
    suspect = Suspect(SLOT, frozenset({MESSAGE_ID}), Kind.EXTRA_ROW, PROJECTION.name, LONG_AGO)
    suspect = replace(suspect, suspected=Kind.EXTRA_ROW)
    examines = replace(alone, together=together)
    return examines.examine([suspect], permit(OPEN), f"batch at {one.now}")[-1]


def test_a_row_that_is_newer_than_the_count_is_not_among_the_rows_accepted_together() -> None:
    one, counted, reason = stream(actual=row()), MemoryLostRows(), Kind.ABSENT_WITHOUT_DELETE
    one.lineage.remember([Entry(MESSAGE_ID, SLOT, True, LONG_AGO)])
    counted.keep(FAMILY, [LostRow(SLOT, reason, NOW, NOW)])
    group = lost_rows.together(FAMILY, LostRows(reason, 5_000, 9), NOW)
    one.journal.put(group)
    one.journal.accept(accepted(group, NOW))
    together = AcceptedTogether(FAMILY, one.journal, counted)
    assert became(look(one, together)) == (Action.REPAIR, Kind.EXTRA_ROW)
    written_again(one)
    assert became(look(one, together)) == ASKS_AGAIN
    assert len(one.tables.applied) == 1
