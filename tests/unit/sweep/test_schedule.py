"""When the stream sweeps by itself, and which sweep it goes on with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkpoints.sweeps import SweepRecord
from reconcilers.rows.memory import Watching
from reconcilers.words.model import Micros
from streaming.again.schedule import (
    DAY,
    NOT_WHOLE,
    TIME_HAS_COME,
    SweepSchedule,
    without_lineage,
)

DELAY, NOW = 5_000_000, 1_800_000_000_000_000
BEGAN = NOW - 100 * DELAY
NEEDED = SweepSchedule(when_needed=True, every=None, delay=DELAY)
WEEKLY = SweepSchedule(when_needed=False, every=7 * DAY, delay=DELAY)
MEMORY = Watching(BEGAN)
SWEEP = SweepRecord(BEGAN + DELAY, "the stream", NOT_WHOLE, ("messages",), 512)


def ended(at: int) -> SweepRecord:
    return replace(SWEEP, ended_at=at)


WHOLE = replace(MEMORY, swept_at=NOW - DELAY, listed_at=NOW - DELAY)
HALF = replace(MEMORY, swept_at=NOW - DELAY)
ENDED = ended(NOW - DELAY)
BEFORE = replace(SWEEP, began_at=BEGAN - DAY, ended_at=BEGAN - 1)
DUE: dict[str, tuple[Watching | None, list[SweepRecord], Micros, bool]] = {
    "lineage is not complete": (MEMORY, [], NOW, True),
    "one was interrupted": (MEMORY, [SWEEP], NOW, True),
    "lineage is complete": (WHOLE, [ended(NOW)], NOW, False),
    "only the truth was read: one was ended in its listing half": (HALF, [SWEEP], NOW, True),
    "some of the listing could not be read": (HALF, [ENDED], NOW, False),
    "some of the listing could not be read, a day ago": (HALF, [ENDED], NOW + DAY, True),
    "marked before memory began anew": (replace(MEMORY, swept_at=BEGAN - 1), [BEFORE], NOW, True),
    "nobody watches": (None, [], NOW, False),
    "memory begins now, and could not be whole": (Watching(NOW), [], NOW, False),
    "a loss is noticed now": (Watching(BEGAN, noted_at=NOW), [], NOW, False),
    "one did not make memory whole": (MEMORY, [ENDED], NOW, False),
    "one did not make memory whole, a day ago": (MEMORY, [ENDED], NOW - DELAY + DAY, True),
    "a loss since the last": (MEMORY, [BEFORE], NOW, True),
    "a loss in the last": (Watching(BEGAN, noted_at=SWEEP.began_at), [ENDED], NOW, True),
}


@pytest.mark.parametrize("case", DUE)
def test_whether_a_sweep_is_needed(case: str) -> None:
    watching, sweeps, now, due = DUE[case]
    assert NEEDED.due(watching, sweeps, now) == (NOT_WHOLE if due else None)


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


def test_it_goes_on_with_the_ranges_that_it_has() -> None:
    """The estimate of a table's size changes; what was read need not be read again."""
    of_less = replace(SWEEP, ranges=8)
    assert NEEDED.left(MEMORY, [of_less], SWEEP) == of_less


@pytest.mark.parametrize(
    "other",
    [
        ended(NOW),
        replace(SWEEP, systems=("messages", "deleted_uids")),
        replace(SWEEP, began_at=BEGAN),  # memory may have begun after it
    ],
)
def test_one_that_could_not_make_memory_whole_is_left_alone(other: SweepRecord) -> None:
    assert NEEDED.left(MEMORY, [other], SWEEP) is None


def test_one_that_went_on_while_a_loss_was_noticed_is_begun_anew() -> None:
    noticed = Watching(BEGAN, noted_at=SWEEP.began_at)
    assert NEEDED.left(MEMORY, [SWEEP], SWEEP) == SWEEP
    assert NEEDED.left(noticed, [SWEEP], SWEEP) is None


# --- a family without lineage

READ = replace(SWEEP, ended_at=NOW - DELAY, truth_swept_at=NOW - 2 * DELAY)
RIGHTS_DUE: dict[str, tuple[Watching | None, Micros, list[SweepRecord], bool]] = {
    "never swept": (WHOLE, 0, [], True),
    "nobody watches": (None, 0, [], False),
    "all was read": (WHOLE, 0, [READ], False),
    "some could not be read, a short time ago": (WHOLE, 0, [ENDED], False),
    "one was interrupted": (WHOLE, 0, [SWEEP], True),
    "the lineage of messages began anew since": (Watching(NOW - 2 * DELAY), 0, [READ], True),
    "a loss of all streams in it": (Watching(BEGAN, noted_at=SWEEP.began_at), 0, [READ], True),
    "a loss of its own stream before it": (WHOLE, BEGAN - DELAY, [READ], False),
    "a loss of its own stream in it": (WHOLE, SWEEP.began_at, [READ], True),
    "a loss of its own stream now": (WHOLE, NOW, [READ], False),
}


@pytest.mark.parametrize("case", RIGHTS_DUE)
def test_whether_a_sweep_of_a_family_without_lineage_is_needed(case: str) -> None:
    watching, lost_at, sweeps, due = RIGHTS_DUE[case]
    known = without_lineage(watching, lost_at, sweeps, DELAY)
    assert NEEDED.due(known, sweeps, NOW) == (NOT_WHOLE if due else None)


def test_a_family_without_lineage_is_swept_again_a_day_after_one_that_could_not_read_all() -> None:
    known = without_lineage(WHOLE, 0, [ENDED], DELAY)
    assert NEEDED.due(known, [ENDED], NOW + DAY) == NOT_WHOLE
    weekly = without_lineage(WHOLE, 0, [READ], DELAY)
    assert WEEKLY.due(weekly, [READ], NOW + 7 * DAY) == TIME_HAS_COME
