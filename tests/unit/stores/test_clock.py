"""The clock, and its one unit."""

from __future__ import annotations

import pytest

from checkpoints import clock


def test_now_is_in_micros_since_1970_and_no_later_than_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("checkpoints.clock.time.time_ns", lambda: 1_795_255_200_123_456_999)
    assert clock.now_micros() == 1_795_255_200_123_456


def test_seconds_become_micros_and_back() -> None:
    assert clock.to_micros(1.5) == 1_500_000
    assert clock.to_micros(0.000_000_6) == 1
    assert clock.to_seconds(1_500_000) == 1.5


def test_an_hour_and_a_milli_are_in_micros() -> None:
    assert clock.to_micros(3600) == clock.HOUR
    assert clock.to_micros(0.001) == clock.MICROS_A_MILLI
