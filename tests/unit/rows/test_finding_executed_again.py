"""A look soon after our own write sees it: that is no proof that it holds. Time tells, not names.

A slice that is executed again has the same name; two slices of a batch have two, seconds apart.
"""

from __future__ import annotations

import pytest

from reconcilers.declared.writes import SetCells, Write
from reconcilers.rows.finding import Action, Attempts, Finding, Now, State, Step, advance
from reconcilers.words.model import Consistent, Kind, Micros, Report
from tests.builders.rows import DELAY, FAMILY, LONG_AGO, NOW, PROJECTION, SLOT, row, seen, truth

OURS = SetCells(PROJECTION, SLOT, LONG_AGO + 1, {"flagseen": True})


def finding(state: State, *writes: Write) -> Finding:
    return Finding(
        family=FAMILY.name,
        projection=PROJECTION.name,
        slot=SLOT,
        source=None,
        kind=Kind.DIFFERING_CELLS,
        state=state,
        sentence="",
        found_at=LONG_AGO,
        attempts=1,
        batch="batch 1",
        tried_at=NOW,
        writes=writes,
    )


def agreed(previous: Finding, batch: str, after: Micros) -> Step:
    both = seen(row(), truth())
    attempts = Attempts(most=3, apart=DELAY)
    return advance(previous, Consistent(), both, Now(batch, NOW + after), attempts)


@pytest.mark.parametrize("batch", ["batch 1", "batch 2"])
@pytest.mark.parametrize("state", [State.INTENDED, State.STUCK])
def test_agreement_less_than_a_delay_after_the_write_is_looked_at_again(
    state: State, batch: str
) -> None:
    again = Step(Action.LOOK_AGAIN, reason="its repair must hold for a delay")
    assert agreed(finding(state, OURS), batch, DELAY - 1) == again


@pytest.mark.parametrize("batch", ["batch 1", "batch 2"])
@pytest.mark.parametrize("state", [State.INTENDED, State.STUCK])
def test_agreement_a_delay_after_the_write_verifies_it(state: State, batch: str) -> None:
    verified = Step(Action.CLOSE, ends_as=State.VERIFIED)
    assert agreed(finding(state, OURS), batch, DELAY) == verified


def test_what_was_not_written_has_healed_at_once() -> None:
    assert agreed(finding(State.HELD), "batch 1", 0) == Step(Action.CLOSE, ends_as=State.HEALED)


@pytest.mark.parametrize("state", [State.INTENDED, State.STUCK, State.HELD, State.REPORTED])
def test_a_row_that_cannot_be_read_says_nothing_of_a_repair_that_was_tried(state: State) -> None:
    unread = Report(Kind.UNREADABLE, "cannot be read")
    nothing = seen(None)
    step = advance(finding(state, OURS), unread, nothing, Now("b", NOW), Attempts(most=3))
    tried = state in {State.INTENDED, State.STUCK}
    assert step.action is (Action.KEEP if tried else Action.REPORT)
