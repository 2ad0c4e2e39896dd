"""What systemd is told, read from a socket of the test's own."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from streaming.commands.running.threads import Threads, told_to_systemd
from streaming.monitoring import systemd
from streaming.monitoring.health import HUNG_AFTER, Health
from streaming.monitoring.systemd import Notifier
from tests.builders.systemd import message, message_with, systemd_socket


class Clock:
    """Monotonic seconds; stands still until it is put forward."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["a file", "abstract"])
def ours(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket.socket]:
    with systemd_socket(monkeypatch, request.param) as made:
        yield made


def turns_once(health: Health, stop: Event) -> Event:
    """The supervising thread has waited once."""
    turning = health.watched("supervising", stop)
    turning.wait(0)
    return turning


def test_a_process_is_ready_once_it_has_begun_and_tells_that_it_stops(ours: socket.socket) -> None:
    threads = Threads(Event())
    with told_to_systemd(threads):
        assert message_with(ours, "WATCHDOG=1") == {"STATUS=it starts", "WATCHDOG=1"}
        threads.health.watched("supervising", threads.stop)
        assert message_with(ours, "STATUS=it starts") == {"STATUS=it starts", "WATCHDOG=1"}
        turns_once(threads.health, threads.stop)
        assert message_with(ours, "READY=1") == {"STATUS=ready", "WATCHDOG=1", "READY=1"}
    assert message_with(ours, "STOPPING=1") == {"STOPPING=1"}
    threads.check()


def test_a_process_whose_supervising_thread_hangs_is_not_alive() -> None:
    clock = Clock()
    health = Health("supervising", clock)
    notifier = Notifier(health, "")
    turning = turns_once(health, Event())
    clock.now += HUNG_AFTER + 1
    assert notifier.state() == ["STATUS=thread supervising hangs: no turn for 61 s", "READY=1"]
    turning.is_set()
    assert "WATCHDOG=1" in notifier.state()


def test_another_thread_that_hangs_leaves_it_alive() -> None:
    clock = Clock()
    health = Health("supervising", clock)
    turning = turns_once(health, Event())
    health.watched("sampler", Event()).wait(0)
    clock.now += HUNG_AFTER + 1
    turning.is_set()
    told = ["STATUS=thread sampler hangs: no turn for 61 s", "WATCHDOG=1", "READY=1"]
    assert Notifier(health, "").state() == told


def test_a_reason_of_several_lines_is_one_line(ours: socket.socket) -> None:
    """Else its second line would be a message of its own."""
    threads = Threads(Event())
    threads.health.starting = "it waits\nMAINPID=1"
    with told_to_systemd(threads):
        assert "STATUS=it waits MAINPID=1" in message(ours)


def test_without_systemd_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    threads = Threads(Event())
    with told_to_systemd(threads):
        assert not threads.stop.is_set()
    assert not threads.stop.is_set()


def test_a_socket_that_nobody_reads_ends_nothing_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(systemd, "TICK", 0)
    turns = iter(range(3))

    class Turns(Event):
        def wait(self, timeout: float | None = None) -> bool:
            return next(turns, None) is None

    with caplog.at_level(logging.WARNING):
        Notifier(Health("supervising"), str(tmp_path / "gone")).run(Turns())
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("systemd cannot be told how this process is: ")
