"""Signals that end a run: once, and not in the midst of starting or stopping a server."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded import interrupts
from deploy.embedded.process import Daemon

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture(autouse=True)
def none_ignored() -> Iterator[None]:
    """As of a program in the foreground; afterwards as it was."""
    before = {number: signal.getsignal(number) for number in interrupts.ALL}
    for number in interrupts.ALL:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", interrupts.SILENT)
def test_the_first_signal_interrupts_and_later_ones_do_nothing(number: signal.Signals) -> None:
    told: list[str] = []
    interrupts.raise_once(told.append)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    for later in interrupts.SILENT:
        signal.raise_signal(later)
    assert told == [number.name]


def test_what_was_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interrupts.raise_once()
    with interrupts.held_back():
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) != signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_a_signal_that_is_held_back_comes_after() -> None:
    interrupts.raise_once()
    done: list[str] = []

    def stop_in_parts() -> None:
        with interrupts.held_back():
            with interrupts.held_back():
                signal.raise_signal(signal.SIGTERM)
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        stop_in_parts()
    assert done == ["inner", "outer"]


def test_other_threads_have_nothing_to_hold_back() -> None:
    seen: list[bool] = []

    def stop() -> None:
        before = signal.getsignal(signal.SIGTERM)
        with interrupts.held_back():
            seen.append(signal.getsignal(signal.SIGTERM) is before)

    thread = threading.Thread(target=stop)
    thread.start()
    thread.join()
    assert seen == [True]


def test_a_program_that_is_ending_is_not_interrupted() -> None:
    interrupts.ignore()
    for number in interrupts.ALL:
        signal.raise_signal(number)


def test_a_process_is_noted_although_its_start_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    popen = subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        child = popen(*arguments, **options)
        os.kill(os.getpid(), signal.SIGTERM)
        return child

    interrupts.raise_once()
    daemon = Daemon("sleeper", tmp_path, tmp_path / "sleeper.log")
    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        daemon.start(SLEEP, cwd=tmp_path)
    assert daemon.alive()
    daemon.kill()
