"""What may befall a process of the product: it dies, or a write of its is not answered."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from threading import Lock, Thread


class CrashError(BaseException):
    """The process dies here."""


class Outcome(Enum):
    """What becomes of a write that is sent."""

    APPLIED = "applied"
    APPLIED_BUT_TIMED_OUT = "applied, but timed out"
    TIMED_OUT_THEN_LATE = "timed out, applied later"
    LOST = "timed out, never applied"


class Process:
    """Work that stops at each of its ports, so that anything may happen before it goes on.

    It has a thread of its own, but only one of all of them runs at a time: whoever lets it go on
    waits until it stops. So runs are the same each time, and several may be under way together.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._go, self._stopped = Lock(), Lock()
        self._go.acquire()
        self._stopped.acquire()
        self._raised: BaseException | None = None
        self.ended = self._dies = False
        Thread(target=self._run, daemon=True).start()

    def go_on(self) -> None:
        """Until it stops again, or has ended. Raises what the work raises."""
        self._go.release()
        self._stopped.acquire()
        if self._raised is not None:
            raise self._raised

    def crash(self) -> None:
        """It dies where it has stopped."""
        self._dies = True
        with suppress(CrashError):
            self.go_on()
        assert self.ended, "it goes on after its death"

    def stop(self) -> None:
        """Called by the work itself, at a port."""
        self._stopped.release()
        self._go.acquire()
        if self._dies:
            raise CrashError

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self._dies:
                self._work()
        except BaseException as raised:  # noqa: BLE001  (whoever let it go on raises it)
            self._raised = raised
        self.ended = True
        self._stopped.release()
