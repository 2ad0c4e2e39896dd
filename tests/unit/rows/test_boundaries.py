"""The core at its boundaries: nought, nothing, no writes, no guard."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.counters.drift import correction
from reconcilers.declared.tally import Sum
from reconcilers.declared.writes import AddToSet, DeleteRow
from reconcilers.rows.confirm import describe
from reconcilers.rows.finding import Action, Attempts, Finding, Now, State, advance, newer_than_ours
from reconcilers.rows.memory import Memory
from reconcilers.words.model import Consistent, Difference, Kind, Row
from tests.builders.indexes import APPLICABLE, gathered
from tests.builders.rows import FAMILY, LONG_AGO, MOMENT, NOW, PROJECTION, SLOT, row, seen, truth
from tests.builders.slots import slots

OURS = LONG_AGO


def finding(**changes: object) -> Finding:
    made = Finding(
        family=FAMILY.name,
        projection=PROJECTION.name,
        slot=SLOT,
        source=None,
        kind=Kind.EXTRA_ROW,
        state=State.INTENDED,
        sentence="",
        found_at=LONG_AGO,
        attempts=1,
        batch="batch 1",
        writes=(DeleteRow(PROJECTION, SLOT, OURS),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [State.INTENDED, State.STUCK])
@pytest.mark.parametrize("batch", ["batch 1", "batch 2"])
def test_what_was_never_written_is_not_verified_but_healed(state: State, batch: str) -> None:
    step = advance(
        finding(state=state, writes=()),
        Consistent(),
        seen(row(), truth()),
        Now(batch, NOW),
        Attempts(),
    )
    assert (step.action, step.ends_as) == (Action.CLOSE, State.HEALED)


def test_a_set_that_has_no_guard_goes_by_its_own_time() -> None:
    write = AddToSet(APPLICABLE, SLOT, OURS, "userflags", frozenset({"work"}))
    tried = finding(kind=Kind.DIFFERING_CELLS, projection=APPLICABLE.name, writes=(write,))
    differs = Difference(Kind.DIFFERING_CELLS, ("userflags",))
    for at, newer in ((OURS, False), (OURS + 1, True)):
        actual = Row(gathered().cells, {"userflags": at})
        assert newer_than_ours(tried, differs, seen(actual, truth())) is newer


@pytest.mark.parametrize("wrong", [5, -5])
def test_nothing_is_added_to_what_is_right_by_now(wrong: int) -> None:
    assert correction({Sum.COUNT: wrong}, {Sum.COUNT: 0}) == {}


def test_a_removal_that_a_person_accepted_says_so() -> None:
    orphan = seen(row(), memory=Memory(slots(7, 8), range_deletes=frozenset({LONG_AGO})))
    sentence = describe(FAMILY, PROJECTION, orphan, Difference(Kind.EXTRA_ROW), MOMENT)
    assert sentence.endswith("UID 7 is not in the truth; accepted")


def test_the_sentence_of_a_difference_names_its_columns() -> None:
    differs = Difference(Kind.DIFFERING_CELLS, ("flagseen", "modseq"))
    sentence = describe(FAMILY, PROJECTION, seen(row(), truth()), differs, MOMENT)
    assert sentence.endswith("UID 7 differs in flagseen, modseq")
