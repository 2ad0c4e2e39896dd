"""The summary of the log: each finding counts once in each state, in bounded memory."""

from random import Random

import pytest

from reconcilers.rows.finding import State
from reconcilers.rows.nines import KnownShare
from reconcilers.rows.summary import (
    HEALED,
    LEFT,
    MOST_EXAMPLES,
    OUTCOMES,
    VERIFIED,
    WRITTEN,
    LoggedState,
    Summary,
    by_day,
    outcome_of,
    quantile,
)
from reconcilers.words.model import SECOND, Micros
from reconcilers.words.waiting import Wait

SINCE = 1_000_000 * SECOND
MINUTE = 60 * SECOND


def line(
    name: str = "a", state: State = State.HELD, after: Micros = 0, wrote: bool = False
) -> LoggedState[str]:
    """A finding of ten seconds after SINCE came to a state so long after it was found."""
    found_at = SINCE + 10 * SECOND
    return LoggedState(
        name=name,
        system="messages",
        kind="missing_row",
        state=state,
        at=found_at + after,
        found_at=found_at,
        oldest=found_at - 55 * SECOND,
        wrote=wrote,
        wait=Wait.CEILING if state is State.HELD else None,
        line=f"{name} {state}",
    )


def summed(*lines: LoggedState[str], most: int = 100) -> Summary[str]:
    summary = Summary[str](SINCE, most)
    for each in lines:
        summary.add(each)
    return summary


def test_a_finding_counts_once_in_each_state_however_often_it_is_logged() -> None:
    summary = summed(line(), line(), line("b"), line("b", State.HEALED), line("b", State.HEALED))
    assert summary.by_state() == {
        ("messages", "missing_row", State.HELD): 2,
        ("messages", "missing_row", State.HEALED): 1,
    }
    assert summary.by_wait() == {Wait.CEILING: 2}
    assert summary.lines == 5


def test_lines_before_the_period_do_not_count() -> None:
    summary = Summary[str](SINCE + MINUTE)
    summary.add(line(after=0))
    assert (summary.lines, summary.pasts) == (0, {})


def test_a_finding_of_before_is_not_found_in_it_but_its_end_is_counted() -> None:
    summary = Summary[str](SINCE + MINUTE)
    summary.add(line(state=State.HEALED, after=2 * MINUTE))
    assert list(summary.found) == []
    assert summary.by_state().total() == 1
    assert summary.healed_within(MINUTE, SINCE + 9 * MINUTE) == KnownShare()


@pytest.mark.parametrize(
    ("healed_after", "now_after", "expected"),
    [
        (MINUTE, 2 * MINUTE, KnownShare(good=1)),
        (MINUTE + 1, 2 * MINUTE, KnownShare(bad=1)),
        (None, MINUTE, KnownShare(missing=1)),
        (None, MINUTE + 1, KnownShare(bad=1)),
    ],
)
def test_what_is_too_young_to_have_healed_is_not_known(
    healed_after: Micros | None, now_after: Micros, expected: KnownShare
) -> None:
    lines = [line()]
    if healed_after is not None:
        lines.append(line(state=State.HEALED, after=healed_after))
    summary = summed(*lines)
    assert summary.healed_within(MINUTE, SINCE + 10 * SECOND + now_after) == expected


def test_what_we_have_written_did_not_heal_without_us() -> None:
    summary = summed(
        line(state=State.INTENDED, wrote=True), line(state=State.VERIFIED, after=1, wrote=True)
    )
    assert summary.healed_within(MINUTE, SINCE + 9 * MINUTE) == KnownShare()
    assert summary.not_written() == {}


def test_the_time_to_repair_is_that_of_the_first_repair() -> None:
    summary = summed(
        line(state=State.INTENDED, after=5 * SECOND, wrote=True),
        line(state=State.INTENDED, after=99 * SECOND, wrote=True),
        line("b", State.HELD),
    )
    assert summary.times_to_repair() == {"messages": [60 * SECOND]}


def test_what_waits_would_be_written() -> None:
    summary = summed(line(), line("b", State.OBSERVED), line("c", State.REPORTED))
    assert summary.not_written() == {("messages", "missing_row"): 2}


def test_outcomes() -> None:
    summary = summed(
        line("verified", State.INTENDED, wrote=True),
        line("verified", State.VERIFIED, wrote=True),
        line("written", State.INTENDED, wrote=True),
        line("healed"),
        line("healed", State.HEALED),
        line("left"),
    )
    told = [outcome_of(each) for each in summary.found]
    assert told == [VERIFIED, WRITTEN, HEALED, LEFT]
    day = (SINCE + 10 * SECOND) // (86_400 * SECOND)
    assert by_day(summary.found) == {(day, each): 1 for each in OUTCOMES}


def test_memory_is_bounded_and_what_is_left_out_is_known() -> None:
    lines = [line(str(number)) for number in range(50)]
    summary = summed(*lines, line("3", State.HEALED), most=20)
    assert len(summary.pasts) == 20
    assert summary.left_out == 30
    assert summary.by_state()["messages", "missing_row", State.HEALED] == 1


def test_examples_are_the_newest_lines_of_findings_chosen_alike_each_time() -> None:
    lines = [line(str(number)) for number in range(300)]
    one = summed(*lines, *(line(str(n), State.HEALED) for n in range(300)), most=1000).examples
    assert len(set(one)) == MOST_EXAMPLES
    assert all(each.endswith("healed") for each in one)
    numbers = [int(each.split()[0]) for each in one]
    assert min(numbers) < 100
    assert max(numbers) >= 200
    Random(3).shuffle(lines)
    other = summed(*lines, most=1000).examples
    assert {each.split()[0] for each in other} == {each.split()[0] for each in one}


@pytest.mark.parametrize(("part", "expected"), [(0.5, 5), (0.99, 10), (0.0, 1), (1.0, 10)])
def test_quantiles(part: float, expected: int) -> None:
    assert quantile(list(range(1, 11)), part) == expected


def test_the_quantile_of_one_value() -> None:
    assert quantile([7], 0.5) == quantile([7], 0.99) == 7
