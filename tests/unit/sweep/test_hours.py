"""A sweep reads within its hours, and waits outside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from unittest.mock import MagicMock, Mock

import pytest
from pydantic import ValidationError

from reconcilers.sweep.hours import Hours
from streaming.again.pauses import LOOKS_AGAIN, WithinHours
from streaming.again.pieces import Piece, SweptPiece
from streaming.again.rounds import AT_FIRST, SweepRounds
from streaming.commands.wiring import sweeper as wiring
from streaming.settings import Settings, SweepSettings

NIGHT, OVER_MIDNIGHT = Hours.of("01:00-05:00"), Hours.of("22:30-05:00")


def at(told: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-28T{told}")


@pytest.mark.parametrize(
    ("hours", "now", "opens_in"),
    [
        (NIGHT, "00:59:59", timedelta(seconds=1)),
        (NIGHT, "01:00:00", timedelta(0)),
        (NIGHT, "04:59:59.999999", timedelta(0)),
        (NIGHT, "05:00:00", timedelta(hours=20)),
        (OVER_MIDNIGHT, "22:29:00", timedelta(minutes=1)),
        (OVER_MIDNIGHT, "22:30:00", timedelta(0)),
        (OVER_MIDNIGHT, "00:00:00", timedelta(0)),
        (OVER_MIDNIGHT, "05:00:00", timedelta(hours=17, minutes=30)),
        (Hours.of("00:00-24:00"), "12:00:00", timedelta(0)),
        (Hours.of("20:00-24:00"), "23:59:59", timedelta(0)),
        (Hours.of("20:00-24:00"), "00:00:00", timedelta(hours=20)),
    ],
)
def test_hours_of_a_day(hours: Hours, now: str, opens_in: timedelta) -> None:
    assert hours.opens_in(at(now)) == opens_in
    assert (hours.closed(at(now)) is None) == (opens_in == timedelta(0))


def test_why_it_waits_names_the_time_and_the_setting() -> None:
    assert NIGHT.closed(at("23:10:00")) == "until 01:00 local time (sweep.between)"


@pytest.mark.parametrize("text", ["", "1-5", "01:00", "01:00-25:00", "24:00-05:00", "01:00-01:00"])
def test_what_are_no_hours_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="between"):
        SweepSettings(between=text)


def test_without_the_setting_there_are_none() -> None:
    assert SweepSettings().hours is None
    assert SweepSettings(between="01:00-05:00").hours == NIGHT


@dataclass
class Clock:
    """Local time, put forward by each wait."""

    now: datetime
    waited: list[float] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += timedelta(seconds=seconds)

    def within(self, hours: Hours) -> WithinHours:
        return WithinHours(hours, self.wait, self.said.append, lambda: self.now)


def test_within_its_hours_it_waits_as_it_is_asked() -> None:
    clock = Clock(at("02:00:00"))
    clock.within(NIGHT)(7)
    assert (clock.waited, clock.said) == ([7], [])


def test_outside_it_waits_until_they_begin_and_says_so_once() -> None:
    clock = Clock(at("00:57:30"))
    clock.within(NIGHT)(0)
    assert clock.now == at("01:00:00")
    assert clock.waited == [0, LOOKS_AGAIN, LOOKS_AGAIN, 30]
    assert clock.said == ["until 01:00 local time (sweep.between)"]


def test_a_clock_that_is_set_ends_the_pause() -> None:
    clock = Clock(at("12:00:00"))

    def set_it(seconds: float) -> None:
        clock.wait(seconds)
        if seconds:
            clock.now = at("03:00:00")

    WithinHours(NIGHT, set_it, clock.said.append, lambda: clock.now)(0)
    assert clock.waited == [0, LOOKS_AGAIN]


def test_a_sweep_that_is_stopped_waits_no_longer() -> None:
    def stopped(_: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        WithinHours(NIGHT, stopped, print, lambda: at("12:00:00"))(0)


@pytest.mark.parametrize("between", [None, "01:00-05:00"])
def test_a_sweep_of_these_settings_pauses(
    monkeypatch: pytest.MonkeyPatch, between: str | None
) -> None:
    """Before each of its rounds."""
    for name in ("_scans", "_sieve", "_mark", "spark_session", "on_workers", "CassandraSweeps"):
        monkeypatch.setattr(wiring, name, MagicMock())
    job, wait = Mock(settings=Settings(sweep=SweepSettings(between=between))), Mock()
    with wiring.sweeper(job, Mock(), Mock(), Mock(), wait) as made:
        waits = made.rounds.wait
    assert isinstance(waits, WithinHours) is (between is not None)
    assert wait in (waits, getattr(waits, "wait", None))


def test_nothing_is_read_while_it_pauses() -> None:
    clock, read = Clock(at("00:59:00")), list[datetime]()

    def scan(pieces: Sequence[Piece]) -> list[SweptPiece]:
        read.append(clock.now)
        clock.now += timedelta(hours=5)
        return [SweptPiece(each) for each in pieces]

    rounds = SweepRounds(scan, Mock(), clock.within(NIGHT), lambda: 0)
    rounds.read({"imapuidtable": range(2 * AT_FIRST)}, 2 * AT_FIRST, Mock(), Mock())
    assert read[0] == at("01:00:00")
    assert all(NIGHT.opens_in(each) == timedelta(0) for each in read)
