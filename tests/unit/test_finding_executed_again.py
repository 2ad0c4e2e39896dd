"""A batch that is executed again sees its own repair: that is no proof that it holds."""

from __future__ import annotations

import pytest

from reconcilers.finding import Action, Attempts, Finding, Now, State, Step, advance
from reconcilers.model import Consistent, Kind
from reconcilers.writes import SetCells, Write
from tests.builders.rows import FAMILY, LONG_AGO, NOW, PROJECTION, SLOT, row, seen, truth

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
        writes=writes,
    )


def agreed(previous: Finding, batch: str) -> Step:
    both = seen(row(), truth())
    return advance(previous, Consistent(), both, Now(batch, NOW), Attempts(most=3))


@pytest.mark.parametrize("state", [State.INTENDED, State.STUCK])
def test_agreement_in_the_very_batch_that_wrote_is_looked_at_again(state: State) -> None:
    reason = "executed again: its repair must hold for a delay"
    assert agreed(finding(state, OURS), "batch 1") == Step(Action.LOOK_AGAIN, reason=reason)


@pytest.mark.parametrize("state", [State.INTENDED, State.STUCK])
def test_agreement_in_another_batch_verifies_the_repair(state: State) -> None:
    verified = Step(Action.CLOSE, ends_as=State.VERIFIED)
    assert agreed(finding(state, OURS), "batch 2") == verified


@pytest.mark.parametrize("batch", ["batch 1", "batch 2"])
def test_what_was_not_written_has_healed_in_whichever_batch(batch: str) -> None:
    assert agreed(finding(State.HELD), batch) == Step(Action.CLOSE, ends_as=State.HEALED)
