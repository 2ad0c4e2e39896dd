"""What waits for a person is looked at after as long again as it has waited, monthly at last."""

from __future__ import annotations

from itertools import pairwise

import pytest

from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import State
from reconcilers.rows.memory import Entry
from reconcilers.words.model import Kind, Micros
from reconcilers.words.waiting import Wait, Waiting
from streaming.steps.recorder import LONGEST
from tests.builders.examining import OPEN, RULES, Stream, stream
from tests.builders.rows import LONG_AGO, MESSAGE_ID, SLOT, row

MONTH: Micros = 30 * 24 * 3600 * 1_000_000
OBSERVER = Admission(observe=True)


def looks_in(one: Stream, span: Micros, kind: Kind, admission: Admission) -> list[Micros]:
    """How long (µs) after the first look each of the others comes, within ``span``."""
    one.settle(kind, admission)
    began, came = one.now, list[Micros]()
    while one.finding is not None and one.finding.next_look is not None:
        if one.finding.next_look > began + span:
            break
        one.now = one.finding.next_look
        one.settle(kind, admission)
        came.append(one.now - began)
    return came


def orphan() -> Stream:
    one = stream(actual=row())
    one.lineage.remember([Entry(MESSAGE_ID, SLOT, True, LONG_AGO)])
    return one


@pytest.mark.parametrize("admission", [OPEN, OBSERVER])
def test_an_orphan_that_nobody_decides_on_is_looked_at_ever_less_often(
    admission: Admission,
) -> None:
    one = orphan()
    came = looks_in(one, 8 * MONTH, Kind.EXTRA_ROW, admission)
    assert one.finding is not None
    assert one.finding.kind is Kind.ABSENT_WITHOUT_DELETE
    assert came[0] >= RULES.recheck_interval
    assert 14 <= len(came) <= 20
    assert all(later - sooner <= MONTH + 2 * RULES.delay for sooner, later in pairwise(came))
    assert LONGEST == MONTH


def test_a_row_that_an_observer_would_repair_is_looked_at_ever_less_often() -> None:
    one = stream(actual=None, wanted=row())
    came = looks_in(one, 8 * MONTH, Kind.MISSING_ROW, OBSERVER)
    assert one.finding is not None
    assert one.finding.state is State.OBSERVED
    assert len(came) <= 20


def test_what_a_limit_holds_is_looked_at_at_the_same_pace() -> None:
    one = stream(actual=None, wanted=row())
    came = looks_in(
        one,
        48 * RULES.recheck_interval,
        Kind.MISSING_ROW,
        Admission(repairs_wait=Waiting(Wait.BREAKER, "open")),
    )
    assert one.finding is not None
    assert one.finding.state is State.HELD
    assert len(came) > 40
