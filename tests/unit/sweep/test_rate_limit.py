"""Reads are kept below so many rows a second; what was not used for a second is lost."""

from __future__ import annotations

import pytest

from streaming.tables import rate_limit
from streaming.tables.rate_limit import RateLimiter
from tests.fakes.sleeping_clock import SleepingClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SleepingClock:
    made = SleepingClock()
    monkeypatch.setattr(rate_limit, "time", made)
    return made


def test_rows_that_came_too_fast_are_slept_for(clock: SleepingClock) -> None:
    limit = RateLimiter(100)
    limit.spend(50)
    limit.spend(25)
    assert clock.slept == pytest.approx([0.5, 0.25])


def test_time_that_has_passed_is_not_slept_again(clock: SleepingClock) -> None:
    limit = RateLimiter(100)
    clock.now += 0.3
    limit.spend(50)
    assert clock.slept == pytest.approx([0.2])


def test_no_more_than_a_second_is_saved_up(clock: SleepingClock) -> None:
    limit = RateLimiter(100)
    clock.now += 3_600
    limit.spend(100)
    assert clock.slept == []
    limit.spend(10)
    assert clock.slept == pytest.approx([0.1])


def test_reading_nothing_costs_nothing(clock: SleepingClock) -> None:
    RateLimiter(100).spend(0)
    assert clock.slept == []


def test_one_of_several_tasks_reads_its_part(clock: SleepingClock) -> None:
    limit = RateLimiter(100)
    limit.share(4)
    limit.spend(25)
    assert clock.slept == pytest.approx([1.0])
    limit.share(1)
    limit.spend(25)
    assert clock.slept == pytest.approx([1.0, 0.25])
