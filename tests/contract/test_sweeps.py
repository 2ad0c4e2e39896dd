"""The contract of sweeps: the same for the fake and for Cassandra."""

import pytest

from checkpoints.cassandra import CassandraSweeps, Store
from checkpoints.sweeps import SweepRecord, Sweeps, SweptRange
from tests.contract.making import a_name
from tests.fakes.checkpoints.sweeps import MemorySweeps

AT = 1_800_000_000_000_000
SWEEP = SweepRecord(AT, "alice", "after an outage; it's odd", ("messages", "recent_uids"), 8)
LATER = SweepRecord(AT + 1, "bob", "", ("messages",), 512)
RANGES = {("imapuidtable", 0): SweptRange(7, 1), ("messageidtable", 0): SweptRange(0, 0, 5)}


@pytest.fixture
def sweeps(real: Store | None) -> Sweeps:
    return MemorySweeps() if real is None else CassandraSweeps(real, a_name("james"))


def test_there_are_none_at_first(sweeps: Sweeps) -> None:
    assert sweeps.all() == ()
    assert sweeps.ranges(SWEEP) == {}


def test_the_newest_comes_first_and_begun_twice_is_one(sweeps: Sweeps) -> None:
    for each in (LATER, SWEEP, LATER):
        sweeps.begin(each)
    assert sweeps.all() == (LATER, SWEEP)


def test_ranges_of_each_table_are_kept_for_each_sweep(sweeps: Sweeps) -> None:
    sweeps.begin(SWEEP)
    sweeps.begin(LATER)
    sweeps.swept(SWEEP, RANGES)
    sweeps.swept(SWEEP, {("imapuidtable", 1): SweptRange(3, 0)})
    sweeps.swept(SWEEP, {})
    assert sweeps.ranges(SWEEP) == {**RANGES, ("imapuidtable", 1): SweptRange(3, 0)}
    assert sweeps.ranges(LATER) == {}


def test_one_that_has_ended_says_how_and_has_no_ranges_any_more(sweeps: Sweeps) -> None:
    sweeps.begin(SWEEP)
    sweeps.swept(SWEEP, RANGES)
    sweeps.truth_swept(SWEEP, AT + 10)
    sweeps.end(SWEEP, AT + 20, "7 rows")
    (ended,) = sweeps.all()
    assert (ended.truth_swept_at, ended.ended_at, ended.outcome) == (AT + 10, AT + 20, "7 rows")
    assert (ended.who, ended.reason, ended.systems) == (SWEEP.who, SWEEP.reason, SWEEP.systems)
    assert sweeps.ranges(SWEEP) == {}
