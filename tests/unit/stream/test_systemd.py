"""What systemd is told, read from a socket of the test's own."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import pytest

from streaming.commands.running.threads import Threads, told_to_systemd
from streaming.monitoring import systemd
from streaming.monitoring.health import HUNG_AFTER, Health
from streaming.monitoring.systemd import Notifier

HANG_S = 60.0
"""Against hangs only."""


class Clock:
    """Monotonic seconds; stands still until it is put forward."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["a file", "abstract"])
def systemd_socket(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket.socket]:
    """The socket that systemd would read. Its path must be short."""
    with (
        TemporaryDirectory() as folder,
        closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as ours,
    ):
        path = str(Path(folder, "notify"))
        ours.bind(path if request.param == "a file" else f"\0{path}")
        ours.settimeout(HANG_S)
        named = path if request.param == "a file" else f"@{path}"
        monkeypatch.setenv("NOTIFY_SOCKET", named)
        monkeypatch.setattr(systemd, "TICK", 0.01)
        yield ours


def told(ours: socket.socket) -> set[str]:
    return set(ours.recv(65536).decode().splitlines())


def until(ours: socket.socket, line: str) -> set[str]:
    """The first message with this line."""
    while line not in (lines := told(ours)):
        pass
    return lines


def turns_once(health: Health, stop: Event) -> Event:
    """The supervising thread has waited once."""
    turning = health.watched("supervising", stop)
    turning.wait(0)
    return turning


def test_a_process_is_ready_once_it_has_begun_and_tells_that_it_stops(
    systemd_socket: socket.socket,
) -> None:
    threads = Threads(Event())
    with told_to_systemd(threads):
        assert until(systemd_socket, "WATCHDOG=1") == {"STATUS=it starts", "WATCHDOG=1"}
        threads.health.watched("supervising", threads.stop)
        assert until(systemd_socket, "STATUS=it starts") == {"STATUS=it starts", "WATCHDOG=1"}
        turns_once(threads.health, threads.stop)
        assert until(systemd_socket, "READY=1") == {"STATUS=ready", "WATCHDOG=1", "READY=1"}
    assert until(systemd_socket, "STOPPING=1") == {"STOPPING=1"}
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
    health.watched("sampler", Event())
    clock.now += HUNG_AFTER + 1
    turning.is_set()
    told = ["STATUS=thread sampler hangs: no turn for 61 s", "WATCHDOG=1", "READY=1"]
    assert Notifier(health, "").state() == told


def test_a_reason_of_several_lines_is_one_line(systemd_socket: socket.socket) -> None:
    """Else its second line would be a message of its own."""
    threads = Threads(Event())
    threads.health.starting = "it waits\nMAINPID=1"
    with told_to_systemd(threads):
        assert "STATUS=it waits MAINPID=1" in told(systemd_socket)


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
