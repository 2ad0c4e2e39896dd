"""How commands handle SIGTERM and SIGINT."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType

from reconcilers.words.errors import ReconcilerError
from reconcilers.words.exit_codes import ExitCode
from streaming.monitoring.logs import SPARK

CODES = {signal.SIGTERM: ExitCode.TERMINATED, signal.SIGINT: ExitCode.INTERRUPTED}

GROUP_REACHED = 1.0
"""Seconds in which a signal has reached all processes of a group."""


class Signalled(BaseException):
    """A signal ends the command. No handler of errors catches it.

    ``then`` says what a person does next, if anything.
    """

    def __init__(self, number: int, then: str = "") -> None:
        name = signal.Signals(number).name
        super().__init__(f"ended by {name}: {then}" if then else f"ended by {name}")
        self.exit_code = CODES[signal.Signals(number)]


class Stop(Event):
    """Set when the process is to stop; ``number`` is that of the signal, if one asked for it."""

    def __init__(self) -> None:
        super().__init__()
        self.number: signal.Signals | None = None

    def ended(self, then: str) -> Signalled:
        """The exception that ends the command, with what a person does next."""
        return Signalled(self.number or signal.SIGINT, then)

    @contextmanager
    def first(self, then: str) -> Iterator[None]:
        """Raise `Signalled` instead of an error that comes with a signal.

        A signal to the whole process group ends what this process has started, Spark above all. A
        thread that has failed sets the event too; its error is the one that counts.
        """
        try:
            yield
        except ReconcilerError as failed:
            if self.wait(GROUP_REACHED) and self.number is not None:
                raise self.ended(then) from failed
            raise


def stopped_by_signals() -> Stop:
    """An event that SIGTERM and SIGINT set from now on; the command ends itself.

    From then on Spark's lines are not logged: a signal to the whole process group ends its workers
    too, and it reports each as lost.
    """
    stop = Stop()
    logging.getLogger(SPARK).addFilter(lambda _: not stop.is_set())

    def asked(number: int, _: FrameType | None) -> None:
        stop.number = signal.Signals(number)
        stop.set()

    for each in CODES:
        signal.signal(each, asked)
    return stop


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """While this is open SIGTERM and SIGINT raise `Signalled`, so that what is open is closed."""
    if current_thread() is not main_thread():
        yield
        return
    before = {each: signal.signal(each, _end) for each in CODES}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _end(number: int, _: FrameType | None) -> None:
    raise Signalled(number)
