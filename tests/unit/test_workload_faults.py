"""Which statement meets which fault follows from the seed alone."""

import uuid
from collections import Counter

import pytest

from deploy.demo.faults import FaultKind, FaultPlan, Faults
from deploy.demo.history import ProjectionWrite, Statement

WRITE = ProjectionWrite(Statement.DELETE, "expunge", uuid.uuid1(), uuid.uuid1(), 1)


def test_the_same_seed_gives_the_same_faults() -> None:
    plan = FaultPlan(seed=7, count=40, statements=200)
    assert plan.faults() == FaultPlan(seed=7, count=40, statements=200).faults()
    assert plan.faults() != FaultPlan(seed=8, count=40, statements=200).faults()


def test_the_kinds_come_in_equal_shares() -> None:
    planned = FaultPlan(seed=1, count=100, statements=300).faults()
    kinds = Counter(fault.kind for fault in planned.values())
    assert kinds == dict.fromkeys(FaultKind, 20)
    assert len({fault.id for fault in planned.values()}) == 100


def test_delays_lie_within_their_bounds() -> None:
    planned = FaultPlan(seed=1, count=50, statements=50, late_s=(2.0, 3.0)).faults()
    assert all(2.0 <= fault.delay_s <= 3.0 for fault in planned.values())


def test_more_faults_than_statements_are_refused() -> None:
    with pytest.raises(ValueError, match="11 faults do not fit in 10 statements"):
        FaultPlan(seed=1, count=11, statements=10).faults()


def test_every_planned_fault_is_met_and_noted_once() -> None:
    plan = FaultPlan(seed=3, count=5, statements=20)
    faults = Faults(plan)
    met = [faults.meet(WRITE) for _ in range(30)]
    assert {n: fault for n, fault in enumerate(met) if fault} == plan.faults()
    assert [entry.id for entry in faults.ledger.entries()] == [f.id for f in met if f]


def test_late_statements_are_waited_for() -> None:
    sent = []
    faults = Faults()
    faults.later(0.05, lambda: sent.append("late"))
    assert sent == []
    faults.wait_for_late_statements()
    assert sent == ["late"]
