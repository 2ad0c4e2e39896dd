"""Reads are kept below so many rows a second; what was not used for a second is lost."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from streaming.tables import rate_limit
from streaming.tables.rate_limit import RateLimiter


@dataclass
class Clock:
    """Time that passes only by sleeping, or by hand."""

    now: float = 1_000.0
    slept: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(rate_limit, "time", made)
    return made


def test_rows_that_came_too_fast_are_slept_for(clock: Clock) -> None:
    limit = RateLimiter(100)
    limit.spend(50)
    limit.spend(25)
    assert clock.slept == pytest.approx([0.5, 0.25])


def test_time_that_has_passed_is_not_slept_again(clock: Clock) -> None:
    limit = RateLimiter(100)
    clock.now += 0.3
    limit.spend(50)
    assert clock.slept == pytest.approx([0.2])


def test_no_more_than_a_second_is_saved_up(clock: Clock) -> None:
    limit = RateLimiter(100)
    clock.now += 3_600
    limit.spend(100)
    assert clock.slept == []
    limit.spend(10)
    assert clock.slept == pytest.approx([0.1])


def test_reading_nothing_costs_nothing(clock: Clock) -> None:
    RateLimiter(100).spend(0)
    assert clock.slept == []


def test_one_of_several_tasks_reads_its_part(clock: Clock) -> None:
    limit = RateLimiter(100)
    limit.share(4)
    limit.spend(25)
    assert clock.slept == pytest.approx([1.0])
    limit.share(1)
    limit.spend(25)
    assert clock.slept == pytest.approx([1.0, 0.25])
