"""The schedule of faults: for every seed, length and choice of faults."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.nemesis.plan import REST_S, USUAL_MINUTES
from deploy.nemesis.schedule import FaultChoice, InjectedFault, fault_schedule

CHOICES = st.lists(
    st.builds(
        lambda kind, group, number: FaultChoice(kind, f"{group}{number}", group),
        st.sampled_from(InjectedFault),
        st.sampled_from(["node", "agent", "broker", "stream"]),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=20,
    unique=True,
)
SEEDS, LENGTHS_S, RESTS_S = st.integers(0, 2**32), st.floats(0, 4000), st.floats(1, 120)


@given(SEEDS, LENGTHS_S, RESTS_S, CHOICES)
def test_faults_come_alone_or_in_pairs_with_rests_between(
    seed: int, length_s: float, rest_s: float, choices: list[FaultChoice]
) -> None:
    faults = fault_schedule(seed, length_s, rest_s, choices)
    assert faults == fault_schedule(seed, length_s, rest_s, choices)
    group_of = {each.target: each.group for each in choices}
    possible = {(each.kind, each.target) for each in choices}
    rounds: dict[int, list[object]] = {}
    end_s = 0.0
    for before, after in pairwise([None, *faults]):
        assert after is not None
        assert 20 <= after.for_s <= 60
        assert (after.kind, after.target) in possible
        rounds.setdefault(after.round, []).append(after)
        if before is not None and before.round == after.round:
            assert before.at_s <= after.at_s <= before.end_s
            assert group_of[before.target] != group_of[after.target]
            assert before.kind is not after.kind
        else:
            assert after.at_s >= end_s + rest_s
        end_s = max(end_s, after.end_s)
    assert list(rounds) == list(range(1, len(rounds) + 1))
    assert all(len(each) <= 2 for each in rounds.values())
    assert not faults or end_s + rest_s <= length_s


@given(SEEDS, CHOICES)
def test_no_kind_comes_again_before_all_others_came(seed: int, choices: list[FaultChoice]) -> None:
    faults = fault_schedule(seed, 4000, 10, choices)
    kinds = {each.kind for each in choices}
    counts = Counter(each.kind for each in faults)
    assert counts.keys() == kinds
    assert max(counts.values()) - min(counts.values()) <= 1


@given(SEEDS)
def test_a_run_of_the_usual_length_has_each_kind(seed: int) -> None:
    choices = [FaultChoice(kind, f"target{n}", f"{n}") for n, kind in enumerate(InjectedFault)]
    faults = fault_schedule(seed, USUAL_MINUTES * 60, REST_S, choices)
    assert {each.kind for each in faults} == set(InjectedFault)


def test_some_rounds_are_pairs_and_some_are_not() -> None:
    choices = [FaultChoice(kind, f"target{n}", f"{n}") for n, kind in enumerate(InjectedFault)]
    sizes = Counter(Counter(each.round for each in fault_schedule(1, 4000, 10, choices)).values())
    assert sizes.keys() == {1, 2}


def test_a_schedule_too_short_for_a_round_is_empty() -> None:
    assert fault_schedule(1, 30, 10, [FaultChoice(InjectedFault.KILL_NODE, "node1", "node")]) == []


def test_nothing_to_inject_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one fault"):
        fault_schedule(1, 1200, 10, [])
