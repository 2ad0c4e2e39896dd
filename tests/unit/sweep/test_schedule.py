"""When the stream sweeps by itself, and which sweep it goes on with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkpoints.sweeps import SweepRecord
from reconcilers.rows.memory import Watching
from streaming.again.schedule import DAY, NOT_WHOLE, TIME_HAS_COME, SweepSchedule

DELAY, NOW = 5_000_000, 1_800_000_000_000_000
BEGAN = NOW - 100 * DELAY
NEEDED = SweepSchedule(when_needed=True, every=None, delay=DELAY)
WEEKLY = SweepSchedule(when_needed=False, every=7 * DAY, delay=DELAY)
MEMORY = Watching(BEGAN)
SWEEP = SweepRecord(BEGAN + DELAY, "the stream", NOT_WHOLE, ("messages",), 512)


def ended(at: int) -> SweepRecord:
    return replace(SWEEP, ended_at=at)


def test_where_memory_is_not_whole_a_sweep_is_due() -> None:
    assert NEEDED.due(MEMORY, [], NOW) == NOT_WHOLE


def test_one_that_was_interrupted_is_still_due() -> None:
    assert NEEDED.due(MEMORY, [SWEEP], NOW) == NOT_WHOLE


def test_where_memory_is_whole_none_is() -> None:
    whole = replace(MEMORY, swept_at=NOW - DELAY, listed_at=NOW - DELAY)
    assert NEEDED.due(whole, [ended(NOW)], NOW) is None


def test_while_only_the_truth_was_read_one_is_due() -> None:
    """It was ended in its listing half; or some of that half could not be read, a day ago."""
    half = replace(MEMORY, swept_at=NOW - DELAY)
    assert NEEDED.due(half, [SWEEP], NOW) == NOT_WHOLE
    assert NEEDED.due(half, [ended(NOW - DELAY)], NOW) is None
    assert NEEDED.due(half, [ended(NOW - DELAY)], NOW + DAY) == NOT_WHOLE


def test_a_mark_from_before_memory_began_anew_does_not_count() -> None:
    before = replace(SWEEP, began_at=BEGAN - DAY, ended_at=BEGAN - 1)
    assert NEEDED.due(replace(MEMORY, swept_at=BEGAN - 1), [before], NOW) == NOT_WHOLE


@pytest.mark.parametrize("watching", [None, Watching(NOW), Watching(BEGAN, noted_at=NOW)])
def test_none_is_due_before_it_could_make_memory_whole(watching: Watching | None) -> None:
    assert NEEDED.due(watching, [], NOW) is None


def test_one_that_did_not_make_memory_whole_is_followed_by_another_after_a_day() -> None:
    at = NOW - DELAY
    assert NEEDED.due(MEMORY, [ended(at)], NOW) is None
    assert NEEDED.due(MEMORY, [ended(at)], at + DAY) == NOT_WHOLE


def test_a_loss_since_is_swept_for_at_once() -> None:
    before = replace(SWEEP, began_at=BEGAN - DAY, ended_at=BEGAN - 1)
    assert NEEDED.due(MEMORY, [before], NOW) == NOT_WHOLE


def test_what_is_whole_is_swept_again_when_its_time_has_come() -> None:
    whole = replace(MEMORY, swept_at=NOW)
    assert WEEKLY.due(whole, [ended(NOW)], NOW + 7 * DAY - 1) is None
    assert WEEKLY.due(whole, [ended(NOW)], NOW + 7 * DAY) == TIME_HAS_COME
    assert WEEKLY.due(whole, [], NOW) == TIME_HAS_COME


def test_what_is_not_asked_for_is_never_due() -> None:
    assert replace(WEEKLY, every=None).due(MEMORY, [], NOW + 400 * DAY) is None


def test_it_goes_on_with_the_newest_that_has_not_ended() -> None:
    newer = replace(SWEEP, began_at=SWEEP.began_at + 1)
    assert NEEDED.left(MEMORY, [SWEEP, newer, ended(NOW)], SWEEP) == newer


@pytest.mark.parametrize(
    "other",
    [
        ended(NOW),
        replace(SWEEP, systems=("messages", "deleted_uids")),
        replace(SWEEP, ranges=8),
        replace(SWEEP, began_at=BEGAN),  # memory may have begun after it
    ],
)
def test_one_that_could_not_make_memory_whole_is_left_alone(other: SweepRecord) -> None:
    assert NEEDED.left(MEMORY, [other], SWEEP) is None


def test_one_that_went_on_while_a_loss_was_noticed_is_begun_anew() -> None:
    noticed = Watching(BEGAN, noted_at=SWEEP.began_at)
    assert NEEDED.left(MEMORY, [SWEEP], SWEEP) == SWEEP
    assert NEEDED.left(noticed, [SWEEP], SWEEP) is None
    assert NEEDED.due(noticed, [ended(NOW - DELAY)], NOW) == NOT_WHOLE
