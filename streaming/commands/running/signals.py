"""How commands handle SIGTERM and SIGINT."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType

from reconcilers.words.exit_codes import ExitCode

CODES = {signal.SIGTERM: ExitCode.TERMINATED, signal.SIGINT: ExitCode.INTERRUPTED}


class Stop(Event):
    """Set when the process is to stop; ``code`` is the exit code of the signal."""

    def __init__(self) -> None:
        super().__init__()
        self.code = ExitCode.INTERRUPTED


def stopped_by_signals() -> Stop:
    """An event that SIGTERM and SIGINT set from now on; the command ends itself."""
    stop = Stop()

    def asked(number: int, _: FrameType | None) -> None:
        stop.code = CODES[signal.Signals(number)]
        stop.set()

    for each in CODES:
        signal.signal(each, asked)
    return stop


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """While this is open, SIGTERM raises an exception, so everything that was opened is closed."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(_number: int, _: FrameType | None) -> None:
    raise SystemExit(ExitCode.TERMINATED)
