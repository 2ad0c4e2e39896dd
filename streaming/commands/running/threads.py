"""The threads of a process: one that ends unasked ends the process, and so nothing stops unseen."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread

from reconcilers.words.errors import EndedItself, ReconcilerError

log = logging.getLogger("reconciler")


class Threads:
    """Starts threads that run until ``stop`` is set.

    What can be tried again a thread tries again itself. If one ends before it was told to, by an
    exception or by a return, that is logged, and ``stop`` is set: all others end, too, and the
    process with them (`check`). Its supervisor starts it again. One that fails after it was told to
    end is logged only.
    """

    def __init__(self, stop: Event) -> None:
        self.stop = stop
        self.failed: ReconcilerError | None = None
        """Why the process ends; None while all threads run, or have ended as they were told."""

    def start(self, name: str, run: Callable[[Event], object]) -> Thread:
        """Run this in a thread of this name, until told to stop."""
        thread = Thread(target=self._run, args=(name, run), name=name, daemon=True)
        thread.start()
        return thread

    def check(self) -> None:
        """Raises the error that ended a thread: `EndedItself` unless it says who has to act."""
        if self.failed is not None:
            raise self.failed

    def _run(self, name: str, run: Callable[[Event], object]) -> None:
        try:
            run(self.stop)
        except ReconcilerError as failed:
            log.critical("thread %s has ended: %s", name, failed)
            self._end(failed)
        except Exception as failed:
            log.critical("thread %s has ended by a defect", name, exc_info=failed)
            self._end(EndedItself(f"thread {name} has ended by a defect: {failed!r}"))
            raise SystemExit from failed  # of this thread: it has been logged
        else:
            if not self.stop.is_set():
                log.critical("thread %s has ended by itself", name)
                self._end(EndedItself(f"thread {name} has ended by itself"))

    def _end(self, why: ReconcilerError) -> None:
        if not self.stop.is_set():  # else others end because of the first, or all as they are told
            self.failed = self.failed or why
        self.stop.set()
