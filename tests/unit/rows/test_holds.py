"""A key on hold: its difference is found and told, nothing is written there, no limit counts it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from checkpoints.pauses import Resumed
from reconcilers.declared.family import Family
from reconcilers.limits.gate import Admission
from reconcilers.limits.hold import Hold
from reconcilers.rows.finding import Action, State
from reconcilers.words.model import Kind, Slot
from reconcilers.words.waiting import Wait
from streaming.pipeline.worker import BatchLook
from tests.builders.examining import Stream, stream
from tests.builders.rows import FAMILY, MAILBOX, NOW, PROJECTION, SLOT, truth
from tests.unit.limits.test_admission import MOST, look, suspects
from tests.unit.limits.test_admission import Desk as AdmissionDesk
from tests.unit.limits.test_open_findings import ELSEWHERE, keeping

HOLD = Hold(FAMILY.name, PROJECTION.name, SLOT, NOW, "ana", "a look")
SENTENCE = "held: on hold by ana: a look; `reconcile findings --release` ends it"


@pytest.fixture
def held() -> Stream:
    made = stream(wanted=truth())
    made.journal.holds.place(HOLD)
    return made


def test_what_is_on_hold_is_found_told_and_not_written_until_it_is_released(held: Stream) -> None:
    assert held.settle(Kind.MISSING_ROW).action is Action.KEEP
    finding = held.open_finding
    assert (finding.state, finding.writes, finding.next_look) == (State.HELD, (), None)
    assert finding.told.endswith(SENTENCE)
    assert finding.wait is Wait.HOLD
    assert held.tables.applied == []
    assert "intended" not in held.logged()
    held.journal.holds.end(HOLD, Resumed(NOW, "bob", "fine"))
    assert held.settle(Kind.MISSING_ROW).action is Action.REPAIR
    assert held.tables.applied


def test_a_hold_of_another_key_or_projection_is_none_of_this_one() -> None:
    free = stream(wanted=truth())
    free.journal.holds.place(replace(HOLD, slot=Slot(MAILBOX, 8)))
    free.journal.holds.place(replace(HOLD, projection="deleted_uids"))
    assert free.settle(Kind.MISSING_ROW).action is Action.REPAIR


def test_a_hold_that_comes_after_the_confirmation_stops_the_write_too() -> None:
    late = stream(wanted=truth())
    asked: list[Iterable[Slot]] = []
    standing = late.journal.holds.standing

    def placed_after_the_first(
        family: Family, projection: str, slots: Iterable[Slot]
    ) -> dict[Slot, Hold]:
        found = standing(family, projection, slots)
        if not asked:
            late.journal.holds.place(HOLD)
        asked.append(slots)
        return found

    late.journal.holds.standing = placed_after_the_first  # type: ignore[method-assign]
    late.settle(Kind.MISSING_ROW)
    assert late.tables.applied == []
    assert late.logged() == ["intended", "held"]


def test_an_observer_observes_it_as_it_does_all(held: Stream) -> None:
    held.settle(Kind.MISSING_ROW, Admission(observe=True))
    assert held.open_finding.state is State.OBSERVED


# --- limits


def test_what_is_on_hold_opens_no_breaker() -> None:
    desk, many = AdmissionDesk(), suspects(MOST + 1)
    for each in many:
        desk.journal.holds.place(replace(HOLD, slot=each.slot, projection=each.projection))
    assert desk.reasons(look(many)) == (None, None)
    assert AdmissionDesk().reasons(look(many))[0] is not None


def test_without_suspects_nobody_is_asked_for_holds() -> None:
    desk = AdmissionDesk()
    assert desk.findings.on_hold(BatchLook().suspects) == set()


def test_what_is_on_hold_comes_back_with_no_breaker_that_is_closed() -> None:
    on_hold = replace(ELSEWHERE, waits=HOLD.waiting)
    assert [each.slot for each in keeping(ELSEWHERE).held()] == [ELSEWHERE.slot]
    assert list(keeping(on_hold).held()) == []
