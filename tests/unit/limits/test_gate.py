"""The gate as a truth table: what each limit answers, and what is let through then."""

from dataclasses import replace
from itertools import combinations

import pytest

from reconcilers.limits.ceiling import Ceiling
from reconcilers.limits.gate import Admission, Answers, admit
from reconcilers.words.waiting import Wait, Waiting

IN_ORDER = {
    "clocks": Waiting(Wait.CLOCKS, "clocks"),
    "fast_writers": Waiting(Wait.FAST_WRITERS, "fast writers"),
    "pauses": Waiting(Wait.PAUSE, "a pause"),
    "repairs_breaker": Waiting(Wait.BREAKER, "repairs"),
}
"""What holds all repairs of rows back; the first of those that do is named."""
REMOVALS = Waiting(Wait.BREAKER, "removals")
BEHIND = Waiting(Wait.BEHIND, "behind")
ALL_WELL = Answers(frontier=7, ceiling=Ceiling(3, 10), generation=5)


def test_all_is_let_through_if_nothing_holds_it_back() -> None:
    assert admit(ALL_WELL) == Admission(frontier=7, ceiling=Ceiling(3, 10), generation=5)
    assert admit(Answers()) == Admission()


@pytest.mark.parametrize(
    "held_by", [some for n in range(1, 5) for some in combinations(IN_ORDER, n)], ids=" ".join
)
def test_the_first_that_holds_everything_back_is_named(held_by: tuple[str, ...]) -> None:
    asked = ALL_WELL
    for name in held_by:
        asked = replace(asked, **{name: IN_ORDER[name]})  # type: ignore[arg-type]
    expected = IN_ORDER[held_by[0]]
    assert admit(asked) == replace(admit(ALL_WELL), repairs_wait=expected, ceiling=None)
    assert asked.trouble == (None if held_by == ("repairs_breaker",) else expected)


def test_a_breaker_of_removals_holds_nothing_else() -> None:
    admitted = admit(replace(ALL_WELL, removals_breaker=REMOVALS))
    assert admitted == replace(admit(ALL_WELL), removals_wait=REMOVALS)


def test_while_the_stream_is_behind_its_frontier_proves_nothing() -> None:
    admitted = admit(replace(ALL_WELL, behind=BEHIND))
    assert admitted == replace(admit(ALL_WELL), memory_wait=BEHIND, frontier=None)


def test_an_observer_has_no_ceiling() -> None:
    admitted = admit(replace(ALL_WELL, observe=True))
    assert admitted == replace(admit(ALL_WELL), observe=True, ceiling=None)
