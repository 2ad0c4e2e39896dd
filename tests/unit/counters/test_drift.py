"""Truth tables of the arithmetic of drift: what a look shows, how many are enough, what is added.

That no interval tells more than the error, whatever was under way, is in `tests/property`.
"""

from __future__ import annotations

import pytest

from reconcilers.counters.drift import (
    Evidence,
    Interval,
    Observation,
    correction,
    interval_of,
    proven_drift,
    remembered,
    whole_count_is_due,
)
from reconcilers.declared.tally import Sum, Sums

K3 = Evidence(looks=3, of=6)
COUNT, UNSEEN, SIZE = Sum.COUNT, Sum.UNSEEN, Sum.SIZE


def observation(stored: Sums, expected: Sums, round_: int = 1) -> Observation:
    return Observation(at=10, round=round_, stored=stored, expected=expected)


def shown(
    bound: int, *, changes: int = 0, whole: str = "", round_: int = 1, at: int = 10
) -> Interval:
    """A look at the count."""
    return Interval(at, round_, {COUNT: bound}, exact=not changes, whole=bool(whole))


def whole(bound: int, changes: int = 0) -> Interval:
    return shown(bound, changes=changes, whole="counted anew")


# --- interval_of ---------------------------------------------------------------------------------


def test_drift_is_stored_minus_expected_for_what_the_row_holds() -> None:
    assert observation({COUNT: 7}, {COUNT: 4, UNSEEN: 1}).drift == {COUNT: 3}


@pytest.mark.parametrize(
    ("of", "drift", "changes", "bound"),
    [
        (COUNT, 0, 0, 0),
        (COUNT, 5, 0, 5),
        (COUNT, -5, 0, -5),
        (COUNT, 5, 2, 3),
        (COUNT, -5, 2, -3),
        (COUNT, 5, 4, 1),
        (COUNT, 5, 5, 0),
        (COUNT, -5, 5, 0),
        (COUNT, 5, 6, 0),
        (COUNT, -5, 6, 0),
        (UNSEEN, -5, 2, -3),
        (SIZE, 900, 0, 900),
        (SIZE, -900, 0, -900),
        (SIZE, 900, 1, 0),
    ],
)
def test_what_a_look_shows_for_sure(of: Sum, drift: int, changes: int, bound: int) -> None:
    look = observation({of: 1000 + drift}, {of: 1000})
    assert interval_of(look, changes).bound == {of: bound}


@pytest.mark.parametrize(("changes", "exact"), [(0, True), (1, False)])
def test_a_look_is_exact_when_nothing_was_under_way(changes: int, exact: bool) -> None:
    assert interval_of(observation({COUNT: 1}, {COUNT: 1}), changes).exact is exact


def test_an_interval_keeps_when_in_which_round_and_how_it_was_looked() -> None:
    look = Observation(at=7, round=3, stored={COUNT: 1}, expected={COUNT: 0}, whole=True)
    assert interval_of(look, 0) == Interval(7, 3, {COUNT: 1}, exact=True, whole=True)


@pytest.mark.parametrize(
    ("bound", "changes", "agrees"), [(0, 0, True), (0, 1, False), (1, 0, False), (1, 1, False)]
)
def test_a_counter_agrees_only_for_sure(bound: int, changes: int, agrees: bool) -> None:
    assert shown(bound, changes=changes).agrees is agrees


# --- remembered ----------------------------------------------------------------------------------


def test_a_look_is_added_to_those_of_its_round() -> None:
    before = (shown(1, round_=1, at=1), shown(1, round_=2, at=2))
    newest = shown(2, round_=2, at=3)
    assert remembered(before, newest, K3) == (before[1], newest)


def test_a_look_that_agrees_forgets_all() -> None:
    assert remembered((shown(1), shown(1)), shown(0), K3) == ()


def test_a_look_that_says_nothing_forgets_none() -> None:
    unsure = shown(0, changes=1)
    assert remembered((shown(1),), unsure, K3) == (shown(1), unsure)


@pytest.mark.parametrize("made", [5, 6, 7])
def test_no_more_are_kept_than_count(made: int) -> None:
    kept: tuple[Interval, ...] = ()
    for at in range(made):
        kept = remembered(kept, shown(1, at=at), K3)
    assert [each.at for each in kept] == list(range(max(0, made - K3.of), made))


# --- proven_drift --------------------------------------------------------------------------------

TOLD = shown(2)
UNSURE = shown(0, changes=1)
RIGHT = shown(0)

PROVEN = [
    ((), 0),
    ((TOLD, TOLD), 0),
    ((TOLD, whole(2)), 0),
    ((TOLD, TOLD, TOLD), 0),
    ((TOLD, TOLD, whole(2)), 2),
    ((TOLD, shown(5), whole(3)), 2),
    ((shown(-4), shown(-5), whole(-3)), -3),
    ((TOLD, shown(-1), TOLD, whole(2)), 0),
    ((TOLD, UNSURE, TOLD, whole(2)), 2),
    ((TOLD, TOLD, UNSURE, whole(2)), 2),
    ((TOLD, TOLD, TOLD, whole(0, changes=1)), 0),
    ((TOLD, TOLD, RIGHT, whole(2)), 0),
    ((shown(9), RIGHT, TOLD, TOLD, whole(2)), 2),
    ((whole(2), TOLD, TOLD), 0),
]


@pytest.mark.parametrize(("looks", "by"), PROVEN)
def test_three_looks_on_one_side_the_last_at_the_whole(
    looks: tuple[Interval, ...], by: int
) -> None:
    assert proven_drift(looks, K3) == ({COUNT: by} if by else {})


def test_each_sum_is_proven_by_itself() -> None:
    looks = [
        Interval(at, 1, {COUNT: count, UNSEEN: unseen}, exact=False, whole=True)
        for at, (count, unseen) in enumerate([(1, 4), (1, 4), (0, 4)])
    ]
    assert proven_drift(looks, K3) == {UNSEEN: 4}


# --- whole_count_is_due --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("looks", "due"),
    [
        ((), False),
        ((TOLD,), False),
        ((TOLD, UNSURE), False),
        ((TOLD, RIGHT, TOLD), False),
        ((TOLD, shown(-2)), False),
        ((TOLD, TOLD), True),
        ((TOLD, TOLD, UNSURE), True),
        ((TOLD, TOLD, UNSURE, UNSURE, UNSURE), True),
        ((TOLD, TOLD, UNSURE, UNSURE, UNSURE, UNSURE), False),
    ],
    ids=[
        "none",
        "one",
        "one that tells",
        "right in between",
        "on both sides",
        "two",
        "two and one that says nothing",
        "two of the last five",
        "one of them is forgotten when one more is kept",
    ],
)
def test_everything_is_counted_when_one_more_look_may_be_enough(
    looks: tuple[Interval, ...], due: bool
) -> None:
    assert whole_count_is_due(looks, K3) is due


def test_where_one_look_is_enough_the_first_counts_everything() -> None:
    assert whole_count_is_due((), Evidence(looks=1, of=2))


# --- correction ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "now", "added"),
    [
        (3, 3, -3),
        (3, 5, -3),
        (3, 2, -2),
        (-3, -3, 3),
        (-3, -5, 3),
        (-3, -2, 2),
        (3, 0, 0),
        (-3, 0, 0),
        (3, -3, 0),
        (-3, 3, 0),
    ],
)
def test_no_more_is_added_than_either_shows(wrong: int, now: int, added: int) -> None:
    assert correction({COUNT: wrong}, {COUNT: now}) == ({COUNT: added} if added else {})


def test_only_sums_that_are_wrong_are_corrected() -> None:
    assert correction({UNSEEN: 1}, {UNSEEN: 1, COUNT: 7}) == {UNSEEN: -1}
