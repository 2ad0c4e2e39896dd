"""Restarts the counting thread when it ends by a fault, after a growing pause."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Protocol

from checkpoints.lease import time_awake_or_asleep
from reconcilers.words.errors import ReconcilerError
from streaming.counters.batch_summary import BatchSummary
from streaming.monitoring.metrics import Metrics

log = logging.getLogger("reconciler")

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 600.0
"""Seconds before a restart: doubled each time, at most this."""
LIVES = 3_600.0
"""Seconds that a thread must run before the pause is reset."""


class Counting(Protocol):
    """What is restarted; `streaming.counters.loop.CounterLoop` is the real one."""

    def take(self, batch: BatchSummary) -> None:
        """Queue the summary of a batch that has ended."""

    def run(self, stop: Event) -> None:
        """Run until ``stop`` is set; ends earlier only by a fault of ours, which it has logged."""


@dataclass(slots=True)
class CountingThread:
    """``build`` makes a loop from the stored marks, rounds and findings.

    ``clock`` is monotonic (s). The first loop is made in the constructor, so that an error of
    opening is raised at the start.
    """

    build: Callable[[], Counting]
    metrics: Metrics
    clock: Callable[[], float] = time_awake_or_asleep
    _loop: Counting = field(init=False)

    def __post_init__(self) -> None:
        self._loop = self.build()

    def take(self, batch: BatchSummary) -> None:
        """Queue the summary of a batch that has ended."""
        self._loop.take(batch)

    def run(self, stop: Event) -> None:
        """Run until ``stop`` is set. After a fault the loop's state in memory is dropped."""
        pause = FIRST_PAUSE
        while True:
            began = self.clock()
            thread = Thread(target=self._loop.run, args=(stop,), name="tallies", daemon=True)
            thread.start()
            thread.join()
            if stop.is_set():
                return
            pause = FIRST_PAUSE if self.clock() > began + LIVES else pause
            if self._begins_anew(stop, pause):
                pause = min(2 * pause, LONGEST_PAUSE)

    def _begins_anew(self, stop: Event, pause: float) -> bool:
        self.metrics.tally_restarts.inc()
        log.error("counting restarts in %d s: its thread has ended by a fault", round(pause))
        while not stop.wait(pause):
            try:
                self._loop = self.build()
            except ReconcilerError as failed:
                log.warning("counting does not begin: %s", failed)
            else:
                return True
        return False
