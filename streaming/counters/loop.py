"""The loop of the counting thread: it takes in batches, and works through due counters."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event

from checkpoints.clock import to_micros
from reconcilers.words.errors import ReadFailed, ReconcilerError, Refused
from reconcilers.words.waiting import Waiting
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.changed_mailboxes import ChangedMailboxes
from streaming.counters.counter_findings import CounterFindings
from streaming.counters.counter_row import CounterRows
from streaming.counters.pending_counter import PendingCounter
from streaming.counters.progress import CounterProgress
from streaming.counters.schedule import CounterScheduler

log = logging.getLogger("reconciler")

TICK = 0.5
RECALL_EVERY = 30.0
PAUSE = 5.0
"""Seconds to wait after a failure of the surroundings."""
TURN = 5.0
"""Seconds to schedule counters, then to work on those that are due, until the next turn."""
REFUSED_FOR = 60.0
"""Seconds to leave a counter alone that may not be read."""


@dataclass(slots=True)
class CounterLoop:
    """Keeps the tallies of an installation; `take` is called by another thread than `run`.

    ``asked`` return why nothing may be corrected, None if it may. They are called every
    `RECALL_EVERY` seconds, so that an outage is remembered and a closed breaker is noticed.
    """

    scheduler: CounterScheduler
    changed: ChangedMailboxes
    counters: CounterRows
    findings: CounterFindings
    asked: Collection[Callable[[], Waiting | None]]
    progress: CounterProgress
    _queue: SimpleQueue[BatchSummary] = field(default_factory=SimpleQueue)
    _recalled_at: float = float("-inf")

    def take(self, batch: BatchSummary) -> None:
        """Queue the summary of a batch that has ended."""
        self._queue.put(batch)

    def run(self, stop: Event) -> None:
        """Run until ``stop`` is set. Failed work is repeated; a fault of ours is raised."""
        self.progress.lives()
        while not stop.is_set():
            try:
                self._turn(stop)
            except ReconcilerError as failed:
                self.progress.lives()
                log.warning("tallies wait: %s", failed)
                stop.wait(PAUSE)
            except Exception:
                log.exception("tallies have ended by a fault of ours")
                raise

    def _turn(self, stop: Event) -> None:
        self._take_in(TICK)
        self._recall()
        try:
            self.changed.schedule(time.monotonic() + TURN)
        finally:  # where marks or an owner cannot be read, no counter waits for them
            self._work_on_due(stop)
            self.progress.turn(len(self.scheduler) + len(self.changed.queue))

    def _work_on_due(self, stop: Event) -> None:
        end = time.monotonic() + TURN
        for pending in self.scheduler.ready():
            if stop.is_set() or time.monotonic() > end:
                break
            self._take_in(0)
            self._work(pending)

    def _take_in(self, wait: float) -> None:
        """Take in all ended batches, so that a look has all changes before it is judged."""
        for batch in self._ended(wait):
            self.scheduler.take(batch)
            self.changed.queue.take(batch)

    def _ended(self, wait: float) -> Iterator[BatchSummary]:
        try:
            yield self._queue.get(timeout=wait) if wait else self._queue.get_nowait()
            while True:
                yield self._queue.get_nowait()
        except Empty:
            return

    def _work(self, pending: PendingCounter) -> None:
        """Work on one counter: a refusal puts off this one only, an unreachable server all."""
        try:
            self.scheduler.work(pending)
        except (Refused, ReadFailed) as refused:
            log.warning("%s is not looked at: %s", pending.counter, refused)
            self.scheduler.put_off(pending, to_micros(REFUSED_FOR))
        except ReconcilerError:
            self.scheduler.put_off(pending, to_micros(PAUSE))
            raise

    def _recall(self) -> None:
        """Read the open findings every `RECALL_EVERY` seconds, and schedule those that are due."""
        if time.monotonic() - self._recalled_at < RECALL_EVERY:
            return
        self.changed.look_for_epoch()
        found = self.findings.recall()
        left = self.findings.limits.at_once
        for finding in self.findings.due():
            if left > 0:
                left -= self.scheduler.expect(self.counters.of_finding(finding))
        counts = Counter((each.projection, each.kind.value, each.state.value) for each in found)
        self.progress.open(counts)
        for why in self.asked:
            why()
        self._recalled_at = time.monotonic()
