"""The arithmetic of intervals: what observations of a counter tell, and what is added for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.counters import drift
from reconcilers.counters.drift import Evidence, Interval, Observation
from reconcilers.declared.tally import Sum
from tests.property.tally_runs import K

DRIFTS = st.integers(-20, 20)
LOOKS = st.lists(st.tuples(DRIFTS, st.integers(0, 6)), min_size=1, max_size=8)
EVIDENCE = Evidence(K, 2 * K)


def shown(drift_: int, changes: int, whole: bool = True) -> Interval:
    look = Observation(0, 0, {Sum.COUNT: drift_}, {Sum.COUNT: 0}, whole)
    return drift.interval_of(look, changes)


@given(DRIFTS, st.integers(0, 6), st.integers(-6, 6))
def test_an_interval_never_tells_more_than_the_error(error: int, changes: int, noise: int) -> None:
    """Whatever was under way: no more than there were changes."""
    told = shown(error + max(-changes, min(noise, changes)), changes).bound[Sum.COUNT]
    assert told * error >= told * told


@given(LOOKS)
def test_what_is_told_is_told_by_so_many_looks_and_the_newest(looks: list[tuple[int, int]]) -> None:
    kept: tuple[Interval, ...] = ()
    for drift_, changes in looks:
        kept = drift.remembered(kept, shown(drift_, changes), EVIDENCE)
    for wrong in drift.proven_drift(kept, EVIDENCE).values():
        told = [each.bound[Sum.COUNT] for each in kept]
        assert sum(each * wrong > 0 for each in told) >= K
        assert not any(each * wrong < 0 for each in told)
        assert told[-1] * wrong > 0
        assert all(abs(wrong) <= abs(each) for each in told if each)


@given(LOOKS)
def test_only_a_look_at_the_whole_may_be_the_last(looks: list[tuple[int, int]]) -> None:
    kept: tuple[Interval, ...] = ()
    for drift_, changes in looks:
        kept = drift.remembered(kept, shown(drift_, changes, whole=False), EVIDENCE)
        assert not drift.proven_drift(kept, EVIDENCE)
        told = shown(drift_, changes)
        if drift.proven_drift(drift.remembered(kept, told, EVIDENCE), EVIDENCE):
            assert drift.whole_count_is_due(kept, EVIDENCE)


@given(DRIFTS, DRIFTS)
def test_a_correction_adds_no_more_than_either_shows(wrong: int, now: int) -> None:
    added = drift.correction({Sum.COUNT: wrong}, {Sum.COUNT: now}).get(Sum.COUNT, 0)
    assert abs(added) <= min(abs(wrong), abs(now))
    assert added * wrong <= 0
    assert (added != 0) == (wrong * now > 0)


def test_a_size_is_unsure_while_anything_is_under_way() -> None:
    look = Observation(0, 0, {Sum.SIZE: 10_000}, {Sum.SIZE: 0})
    assert drift.interval_of(look, 1).bound == {Sum.SIZE: 0}
    assert drift.interval_of(look, 0).bound == {Sum.SIZE: 10_000}


def test_looks_from_before_a_sum_was_right_do_not_count_for_it() -> None:
    def look(count: int, changes: int) -> Interval:
        stored = {Sum.COUNT: count, Sum.UNSEEN: 5}
        return drift.interval_of(
            Observation(0, 0, stored, {Sum.COUNT: 0, Sum.UNSEEN: 0}, True), changes
        )

    for changes, told in ((0, {Sum.UNSEEN: 5}), (1, {Sum.COUNT: 1, Sum.UNSEEN: 4})):
        looks = (look(2, 1), look(2, 1), look(0, changes), look(2, 0))
        assert drift.proven_drift(looks, EVIDENCE) == told | {Sum.UNSEEN: 4}
