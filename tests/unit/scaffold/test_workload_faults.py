"""Which statement meets which fault follows from the seed alone."""

import uuid
from collections import Counter
from dataclasses import replace

import pytest

from deploy.mailserver.counters import COUNTER_TABLES
from deploy.mailserver.faults import COUNTER_FAULTS, INDEX_FAULTS, MESSAGE_FAULTS, FaultPlan, Faults
from deploy.mailserver.history import MESSAGES, ProjectionWrite, Statement
from deploy.mailserver.indexes import INDEX_PROJECTIONS
from deploy.mailserver.workload import Workload

WRITE = ProjectionWrite(Statement.DELETE, "expunge", uuid.uuid1(), uuid.uuid1(), 1)


def test_the_same_seed_gives_the_same_faults() -> None:
    plan = FaultPlan(seed=7, count=40, statements=200)
    assert plan.faults() == FaultPlan(seed=7, count=40, statements=200).faults()
    assert plan.faults() != FaultPlan(seed=8, count=40, statements=200).faults()


def test_the_kinds_come_in_equal_shares() -> None:
    planned = FaultPlan(seed=1, count=100, statements=300).faults()
    kinds = Counter(fault.kind for fault in planned.values())
    assert kinds == dict.fromkeys(MESSAGE_FAULTS, 20)
    assert len({fault.id for fault in planned.values()}) == 100


def test_delays_lie_within_their_bounds() -> None:
    planned = FaultPlan(seed=1, count=50, statements=50, late_s=(2.0, 3.0)).faults()
    assert all(2.0 <= fault.delay_s <= 3.0 for fault in planned.values())


def test_more_faults_than_statements_are_refused() -> None:
    with pytest.raises(ValueError, match="11 faults do not fit in 10 statements"):
        FaultPlan(seed=1, count=11, statements=10).faults()


def test_every_planned_fault_is_met_and_noted_once() -> None:
    plan = FaultPlan(seed=3, count=5, statements=20)
    faults = Faults([plan])
    met = [faults.meet(WRITE) for _ in range(30)]
    assert {n: fault for n, fault in enumerate(met) if fault} == plan.faults()
    assert [entry.id for entry in faults.ledger.entries()] == [f.id for f in met if f]


def test_each_projection_has_its_own_faults() -> None:
    indexed = replace(WRITE, projection="unseen_uids")
    plan = FaultPlan(seed=3, count=2, statements=2, projection="unseen_uids")
    faults = Faults([plan, FaultPlan(seed=3, count=0, statements=0)])
    assert [faults.meet(WRITE) for _ in range(3)] == [None] * 3
    met = [faults.meet(indexed) for _ in range(3)]
    assert [fault.id for fault in met if fault] == ["unseen_uids-000000", "unseen_uids-000001"]
    assert {entry.projection for entry in faults.ledger.entries()} == {"unseen_uids"}


def test_a_workload_plans_faults_for_every_table() -> None:
    workload = Workload(operations=400, faults=40, index_faults=6, counter_faults=3)
    plans = {plan.projection: plan.faults().values() for plan in workload.fault_plans()}
    kinds = {name: {fault.kind for fault in faults} for name, faults in plans.items()}
    assert kinds == {
        MESSAGES: set(MESSAGE_FAULTS),
        **{name: set(INDEX_FAULTS) for name in INDEX_PROJECTIONS},
        **{name: set(COUNTER_FAULTS) for name in COUNTER_TABLES},
    }
    ids = [fault.id for faults in plans.values() for fault in faults]
    assert len(set(ids)) == len(ids) == 40 + 4 * 6 + 2 * 3


def test_late_statements_are_waited_for() -> None:
    sent = []
    faults = Faults()
    faults.later(0.05, lambda: sent.append("late"))
    assert sent == []
    faults.wait_for_late_statements()
    assert sent == ["late"]
