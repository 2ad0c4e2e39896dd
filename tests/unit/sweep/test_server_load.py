"""Fewer rows are read while Cassandra answers slowly, or not in time."""

from __future__ import annotations

import logging
from typing import Any
from unittest.mock import Mock

import pytest
from cassandra import OperationTimedOut, ReadTimeout, Unavailable
from cassandra.protocol import OverloadedErrorMessage

from streaming.commands.wiring import workers
from streaming.settings import CassandraSettings
from streaming.tables import rate_limit, server_load
from streaming.tables.rate_limit import GROWS, LEAST, RateLimiter
from streaming.tables.server_load import FEWEST, SLOW_TIMES, ServerLoad, watch
from tests.fakes.sleeping_clock import SleepingClock

USUAL = 0.06


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SleepingClock:
    made = SleepingClock()
    for module in (rate_limit, server_load):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def load(clock: SleepingClock) -> ServerLoad:
    """Where both statements have a usual time."""
    made = ServerLoad(clock.monotonic)
    for _ in range(FEWEST):
        made.answered("look", USUAL)
        made.answered("write", 0.001)
    clock.now += 1
    made.answered("look", USUAL)
    return made


def a_second(clock: SleepingClock, load: ServerLoad, *answers: tuple[str, float]) -> int:
    """The slow windows of a second with these answers."""
    before = load.slow_windows
    clock.now += 1
    for each in answers:
        load.answered(*each)
    return load.slow_windows - before


def test_usual_answers_are_not_slow(clock: SleepingClock, load: ServerLoad) -> None:
    assert a_second(clock, load, *[("look", 2 * USUAL)] * FEWEST) == 0


def test_answers_that_take_far_longer_than_usual_are_slow(
    clock: SleepingClock, load: ServerLoad
) -> None:
    assert a_second(clock, load, *[("look", SLOW_TIMES * 1.5 * USUAL)] * FEWEST) == 1


def test_a_statement_that_always_takes_long_is_not_slow(
    clock: SleepingClock, load: ServerLoad
) -> None:
    assert a_second(clock, load, *[("scan", 50 * USUAL)] * FEWEST) == 0


def test_what_is_quick_is_not_slow_however_quick_it_was_before(
    clock: SleepingClock, load: ServerLoad
) -> None:
    assert a_second(clock, load, *[("write", 0.04)] * FEWEST) == 0


def test_some_slow_answers_show_nothing(clock: SleepingClock, load: ServerLoad) -> None:
    slow = ("look", 10 * USUAL)
    assert a_second(clock, load, *[slow] * (FEWEST // 2 - 1), *[("look", USUAL)] * FEWEST) == 0


def test_too_few_answers_are_judged_later(clock: SleepingClock, load: ServerLoad) -> None:
    a_second(clock, load, *[("look", USUAL)] * FEWEST)
    assert a_second(clock, load, *[("look", 10 * USUAL)] * (FEWEST - 1)) == 0
    assert a_second(clock, load, ("look", 10 * USUAL)) == 1


def test_a_load_that_stays_becomes_usual(clock: SleepingClock, load: ServerLoad) -> None:
    slow = [a_second(clock, load, *[("look", 5 * USUAL)] * FEWEST) for _ in range(200)]
    assert slow[0] == 1
    assert slow[-1] == 0


@pytest.mark.parametrize(
    ("error", "slow"),
    [
        (OperationTimedOut(), 1),
        (ReadTimeout("no"), 1),
        (OverloadedErrorMessage(0, "no", None), 1),
        (Unavailable("no"), 0),
    ],
)
def test_a_time_out_alone_is_slow(
    clock: SleepingClock, load: ServerLoad, error: Exception, slow: int
) -> None:
    before = load.slow_windows
    clock.now += 1
    load.failed(error)
    assert load.slow_windows - before == slow


class Future:
    """A request of the driver's; its callbacks are called for each page."""

    def __init__(self, query: Any) -> None:
        self.query = query

    def add_callbacks(self, callback: Any, errback: Any) -> None:
        self.answered, self.failed = callback, errback


def test_each_request_of_a_session_is_measured_up_to_its_first_page(clock: SleepingClock) -> None:
    session, load = Mock(), Mock()
    watch(session, load)
    (sent,) = session.add_request_init_listener.call_args.args
    one = Future(Mock(prepared_statement=Mock(query_id=b"look")))
    sent(one)
    clock.now += 0.5
    one.answered([])
    clock.now += 100
    one.answered([])
    load.answered.assert_called_once_with(b"look", 0.5)
    one.failed(error := OperationTimedOut())
    load.failed.assert_called_once_with(error)


def test_undecoded_reads_are_measured_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have a session of their own: most rows are read there."""
    session = Mock()
    monkeypatch.setattr(workers, "connect", lambda _: session)
    beside = workers._raw_reads(CassandraSettings()).session
    assert beside is session.cluster.connect.return_value
    beside.add_request_init_listener.assert_called_once()


# --- the limit


def test_slow_answers_halve_what_was_read(clock: SleepingClock, load: ServerLoad) -> None:
    limiter = RateLimiter(100_000, load)
    clock.now += 1
    limiter.spend(4_000)
    load.slow_windows += 1
    clock.now += 1
    limiter.spend(0)
    assert limiter._limit.now == pytest.approx(2_000), "of the last second, and not of the setting"


def test_it_falls_no_lower_than_a_few_rows_and_no_higher_than_the_setting(
    clock: SleepingClock, load: ServerLoad
) -> None:
    for setting, least in ((100_000, LEAST), (10, 10)):
        limiter = RateLimiter(setting, load)
        for _ in range(20):
            load.slow_windows += 1
            clock.now += 1
            limiter.spend(1)
        assert limiter._limit.now == least


def test_it_grows_again_without_slow_answers(
    clock: SleepingClock, load: ServerLoad, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = RateLimiter(1_000, load)
    load.slow_windows += 1
    with caplog.at_level(logging.INFO):
        began = clock.now
        limiter.spend(1)
        lowered = limiter._limit.now
        clock.now = began + 2
        limiter.spend(0)
        assert limiter._limit.now == pytest.approx(lowered * GROWS**2)
        clock.now += 60
        limiter.spend(0)
    assert limiter._limit.now == 1_000
    assert caplog.messages == [
        "Cassandra answers slowly: fewer rows are read a second",
        "Cassandra answers as usual: rows are read at the usual rate",
    ]
