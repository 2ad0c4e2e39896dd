"""A start waits for servers that do not answer, and ends if one rejects it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from signal import SIGTERM
from threading import Event, Thread
from typing import Any

import pytest

from reconcilers.words.errors import (
    Misconfigured,
    Overloaded,
    ReconcilerError,
    Refused,
    Rejected,
    Unreachable,
)
from streaming.commands.running import canary, servers, stream
from streaming.commands.running.servers import RETRY, TOLD_EVERY, until_answered
from streaming.commands.running.signals import Stop
from streaming.commands.running.threads import Threads
from streaming.monitoring import endpoint
from streaming.monitoring.endpoint import serve
from streaming.monitoring.health import SLOW_HUNG_AFTER
from streaming.settings import Mode, Settings
from tests.builders.systemd import HANG_S, message_with, systemd_socket
from tests.unit.stream.test_health import fetched

AWAY = Unreachable("no host answered")


class Server:
    """Answers as many times as it has to be asked, after these errors."""

    def __init__(self, *errors: ReconcilerError) -> None:
        self.errors = list(errors)
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return "here"


class Waits(Event):
    """Ends no wait, and puts the clock forward by each."""

    def __init__(self, seen: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.now, self.seen = 0.0, seen

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0
        self.seen()
        return self.is_set()


def test_a_start_that_waits_for_long_is_alive_and_one_that_hangs_is_not() -> None:
    waits = Waits()
    threads = Threads(waits, clock=lambda: waits.now)
    server = Server(*[AWAY] * int(SLOW_HUNG_AFTER / RETRY + 2))
    asked_until_answered(server, threads, waits)
    assert waits.now > SLOW_HUNG_AFTER
    assert threads.health.dead() is None
    waits.now += SLOW_HUNG_AFTER
    asked_until_answered(Server(), threads, waits)
    assert threads.health.dead() is None, "each server that answers is a step"
    waits.now += SLOW_HUNG_AFTER + 1
    assert threads.health.dead() == "thread start hangs: no turn for 901 s"


def asked_until_answered(server: Server, threads: Threads, waits: Waits) -> str:
    return until_answered(threads, server, lambda: waits.now)


@pytest.mark.parametrize("away", [AWAY, Overloaded("no quorum yet")])
def test_it_is_asked_again_until_it_answers(
    away: ReconcilerError, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[list[str]] = []
    waits = Waits(lambda: seen.append(threads.health.unready()))
    threads = Threads(waits)
    server = Server(away, away)
    with caplog.at_level("INFO"):
        assert asked_until_answered(server, threads, waits) == "here"
    assert server.asked == 3
    assert seen == [[f"it waits for a server: {away}"]] * 2
    assert threads.health.dead() is None
    assert threads.health.unready() == ["it starts"], "it has not begun yet"
    assert caplog.messages == [f"waiting for a server: {away}", "the servers answer"]


def test_one_line_a_minute_says_so(caplog: pytest.LogCaptureFixture) -> None:
    waits = Waits()
    minutes = 3
    server = Server(*[AWAY] * int(minutes * TOLD_EVERY / RETRY))
    asked_until_answered(server, Threads(waits), waits)
    assert len([each for each in caplog.messages if "waiting" in each]) == minutes


def test_a_server_that_answers_is_told_nothing_of(caplog: pytest.LogCaptureFixture) -> None:
    waits = Waits()
    with caplog.at_level("INFO"):
        asked_until_answered(Server(), Threads(waits), waits)
    assert caplog.messages == []


@pytest.mark.parametrize("error", [Rejected, Refused, Misconfigured])
def test_what_a_person_has_to_mend_ends_it_at_once(error: type[ReconcilerError]) -> None:
    waits = Waits()
    server = Server(AWAY, error("the login is refused"))
    with pytest.raises(error):
        asked_until_answered(server, Threads(waits), waits)
    assert server.asked == 2


def test_a_process_that_is_stopped_waits_no_longer() -> None:
    waits = Waits()
    waits.set()
    server = Server(AWAY, AWAY)
    with pytest.raises(Unreachable):
        asked_until_answered(server, Threads(waits), waits)
    assert server.asked == 1


# --- the commands, where no Cassandra is

NOBODY = Settings.model_validate(
    {
        "cassandra": {"port": 1},
        "metrics": {"port": 0, "canary_port": 0},
        "stream": {"checkpoint_dir": "/nonexistent"},
    }
)


def as_stream(ended: list[object]) -> None:
    ended.append(stream.run(NOBODY, arguments(mode=Mode.OBSERVE.value)))


def as_canary(ended: list[object]) -> None:
    ended.append(canary.run(NOBODY, arguments(begin_anew=False)))


def arguments(**given: Any) -> Namespace:
    return Namespace(accept_loss=False, events_lost=False, standby=False, **given)


@pytest.mark.parametrize("command", [as_stream, as_canary])
def test_it_waits_alive_and_not_ready_and_stops_when_told(
    command: Callable[[list[object]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ports: list[int] = []

    def served(*asked: Any, **named: Any) -> int:
        ports.append(serve(*asked, **named))
        return ports[-1]

    stop, ended = Stop(), list[object]()
    for module in (stream, canary):
        monkeypatch.setattr(module, "stopped_by_signals", lambda: stop)
    for module in (stream, endpoint):
        monkeypatch.setattr(module, "serve", served)
    monkeypatch.setattr(stream, "refuse_without_spark", lambda _: None)
    monkeypatch.setattr(servers, "RETRY", 0.01)
    with systemd_socket(monkeypatch) as ours:
        runs = Thread(target=command, args=(ended,), daemon=True)
        runs.start()
        told = message_with(
            ours, "STATUS=it waits for a server: connecting to Cassandra at 127.0.0.1 port 1"
        )
        assert "WATCHDOG=1" in told
        assert "READY=1" not in told
        (port,) = ports
        assert fetched(port, "/livez") == (200, "ok\n")
        status, why = fetched(port, "/readyz")
        assert (status, why.startswith("it waits for a server: ")) == (503, True)
        stop.number = SIGTERM
        stop.set()
        message_with(ours, "STOPPING=1")
        runs.join(HANG_S)
    assert ended == [0]
