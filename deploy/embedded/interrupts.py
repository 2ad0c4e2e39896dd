"""Signals that ask a program to end, so that it leaves no server of its own behind.

All of it is for the main thread: in no other does Python run what a signal asks for.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SILENT = (signal.SIGTERM, signal.SIGHUP)
"""What would end the program at once, and none of its `finally` run."""
ALL = (*SILENT, signal.SIGINT)

Handler = Callable[[int, FrameType | None], object]


def raise_once(told: Callable[[str], None] | None = None) -> None:
    """From now on the first of SIGTERM and SIGHUP raises KeyboardInterrupt, later ones nothing.

    Many a sender sends twice, to the process and to its group: what ends the servers must not be
    ended itself. `told` gets the signal's name before. One that is ignored (nohup) stays so.
    """

    def first(number: int, _frame: FrameType | None) -> None:
        _handle(SILENT, _nothing)
        if told is not None:
            told(signal.Signals(number).name)
        raise KeyboardInterrupt

    _handle(SILENT, first)


def ignore() -> None:
    """From now on none does anything: the program is ending already."""
    _handle(ALL, _nothing)


@contextmanager
def held_back() -> Iterator[None]:
    """A signal that comes inside takes effect after it.

    So no process is started and not noted, and no stop is left half done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = _handle(ALL, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def _handle(
    numbers: tuple[signal.Signals, ...], handler: Handler
) -> dict[signal.Signals, Handler | int]:
    """Install the handler where the signal is not ignored; return what was there before.

    No handler is SIG_IGN: servers that are started meanwhile would inherit it.
    """
    before: dict[signal.Signals, Handler | int] = {}
    for number in numbers:
        now = signal.getsignal(number)
        if now is not None and now != signal.SIG_IGN:
            before[number] = now
            signal.signal(number, handler)
    return before


def _nothing(_number: int, _frame: FrameType | None) -> None:
    return
