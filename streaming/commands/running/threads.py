"""The threads of a process. If one ends unexpectedly, the whole process ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from reconcilers.words.errors import EndedItself, ReconcilerError
from streaming.monitoring.health import HUNG_AFTER, SLOW_HUNG_AFTER, STARTING, Health, TurningStop
from streaming.monitoring.systemd import Notifier
from streaming.settings import notify_socket

log = logging.getLogger("reconciler")


class Threads:
    """Starts threads that run until ``stop`` is set.

    A thread retries what can be retried. If it ends before ``stop`` is set, that is logged and
    ``stop`` is set, so all others end and the process with them (`check`); its supervisor restarts
    it. A failure after that is logged only.
    """

    def __init__(
        self,
        stop: Event,
        supervising: str = "supervising",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stop = stop
        self.health = Health(supervising, clock)
        self.starting = self.health.watched(STARTING, stop, SLOW_HUNG_AFTER)
        """What the start waits on instead of ``stop``; each of its turns is a step."""
        self.failed: ReconcilerError | None = None
        """Why the process ends; None while all threads run, or have ended as they were told."""
        self.before_waiting: Callable[[], object] = bool
        """Called before each wait at the start: the process then serves its health."""

    def start(
        self, name: str, run: Callable[[Event], object], hung_after: float = HUNG_AFTER
    ) -> Thread:
        """Run this in a thread of this name, until told to stop.

        It counts as hung if it does not wait on its event for ``hung_after`` (s).
        """
        stop = self.health.watched(name, self.stop, hung_after)
        thread = Thread(target=self._run, args=(name, run, stop), name=name, daemon=True)
        thread.start()
        return thread

    def check(self) -> None:
        """Raises the error that ended a thread; `EndedItself` if the error names no one to act."""
        if self.failed is not None:
            raise self.failed

    def _run(self, name: str, run: Callable[[Event], object], stop: TurningStop) -> None:
        try:
            run(stop)
        except ReconcilerError as failed:
            log.critical("thread %s has ended: %s", name, failed)
            self._end(failed)
        except Exception as failed:
            log.critical("thread %s has ended by a defect", name, exc_info=failed)
            self._end(EndedItself(f"thread {name} has ended by a defect: {failed!r}"))
            raise SystemExit from failed  # of this thread: it has been logged
        else:
            if not self.stop.is_set():
                log.critical("thread %s has ended unexpectedly", name)
                self._end(EndedItself(f"thread {name} has ended unexpectedly"))
        finally:
            stop.ended()

    def _end(self, why: ReconcilerError) -> None:
        if not self.stop.is_set():  # else others end because of the first, or all as they are told
            self.failed = self.failed or why
        self.stop.set()


@contextmanager
def told_to_systemd(threads: Threads) -> Iterator[None]:
    """Tell systemd how the process is while this is open, and at the end that it stops.

    Without systemd this does nothing.
    """
    address = notify_socket()
    if address is None:
        yield
        return
    teller = threads.start("systemd", Notifier(threads.health, address).run)
    try:
        yield
    finally:
        threads.stop.set()
        teller.join()
