"""The thread that keeps tallies: fed by the batches, it works through what is due."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event
from uuid import UUID

from checkpoints.journal import Journal
from reconcilers.errors import ReconcilerError, Refused
from reconcilers.family import Family
from reconcilers.finding import Finding
from reconcilers.key import WHOLE_TABLE
from reconcilers.model import Micros
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.correct import Corrector
from streaming.counters.counter_row import CounterRows
from streaming.counters.schedule import CounterScheduler, PendingCounter
from streaming.monitoring.metrics import Metrics
from streaming.steps.parking import Parking

log = logging.getLogger("reconciler")

TICK = 0.5
RECALL_EVERY = 30.0
PAUSE = 5.0
"""Seconds to wait after a failure of the surroundings."""
TURN = 5.0
"""Seconds to work through what is due before batches, findings and metrics have their turn."""
REFUSED_FOR = 60.0
"""Seconds to leave a counter alone that may not be read."""


@dataclass(slots=True)
class CounterLoop:
    """Keeps the tallies of an installation; `take` is called by another thread than `run`."""

    families: tuple[Family, ...]
    journal: Journal
    scheduler: CounterScheduler
    correcting: Corrector
    parking: dict[str, Parking]
    counters: CounterRows
    marked: Callable[[], Iterable[UUID]]
    metrics: Metrics
    clock: Callable[[], Micros]
    _queue: SimpleQueue[BatchSummary] = field(default_factory=SimpleQueue)
    _changed: set[UUID] = field(default_factory=set)
    _recalled_at: float = float("-inf")
    _begun: bool = False

    def take(self, batch: BatchSummary) -> None:
        """A batch of the stream has ended."""
        self._queue.put(batch)

    def run(self, stop: Event) -> None:
        """Until told to stop. What fails is tried again: nothing here ends the stream."""
        while not stop.is_set():
            try:
                self._turn(stop)
            except ReconcilerError as failed:
                log.warning("tallies wait: %s", failed)
                stop.wait(PAUSE)
            except Exception:
                log.exception("tallies have ended by a fault of ours: start the stream again")
                raise

    def _turn(self, stop: Event) -> None:
        if not self._begun:
            self._changed.update(self.marked())
            self._begun = True
        self._take_in(TICK)
        self._recall()
        end = time.monotonic() + TURN
        self._expect(end)
        for pending in self.scheduler.ready():
            if stop.is_set() or time.monotonic() > end:
                break
            self._take_in(0)
            self._work(pending)
        self.metrics.tally_waiting.set(len(self.scheduler) + len(self._changed))

    def _expect(self, end: float) -> None:
        for mailboxid in list(self._changed):
            if time.monotonic() > end:
                return
            try:
                self.scheduler.expect(self.counters.of_mailbox(mailboxid))
            except Refused as refused:
                log.warning("whose mailboxes are is not known: %s", refused)
                return
            self._changed.discard(mailboxid)

    def _take_in(self, wait: float) -> None:
        """Every batch that has ended: a look must not miss what batch out before it is judged."""
        for batch in self._ended(wait):
            self.scheduler.take(batch)
            self._changed.update(batch.changes)

    def _ended(self, wait: float) -> Iterator[BatchSummary]:
        try:
            yield self._queue.get(timeout=wait) if wait else self._queue.get_nowait()
            while True:
                yield self._queue.get_nowait()
        except Empty:
            return

    def _work(self, pending: PendingCounter) -> None:
        """What one table refuses holds up no other; where servers do not answer, all wait."""
        try:
            self.scheduler.work(pending)
        except Refused as refused:
            log.warning("%s is not looked at: %s", pending.counter, refused)
            self.scheduler.put_off(pending, round(REFUSED_FOR * 1e6))
        except ReconcilerError:
            self.scheduler.put_off(pending, round(PAUSE * 1e6))
            raise

    def _recall(self) -> None:
        """The open findings, now and then: after a restart, or when a person has decided."""
        if time.monotonic() - self._recalled_at < RECALL_EVERY:
            return
        found: list[Finding] = []
        for family in self.families:
            found += self.journal.open_findings(family)
            for name in family.names:
                self.parking[family.name].recall(name)
        rows = [each for each in found if each.slot != WHOLE_TABLE]
        self.correcting.recall(rows)
        for each in rows:
            if each.next_look is None or each.next_look <= self.clock():
                self.scheduler.expect(self.counters.of_finding(each))
        counts = Counter((each.projection, each.kind.value, each.state.value) for each in found)
        self.metrics.show_open("tallies", counts)
        self.correcting.trouble()  # an outage is remembered though nobody was to correct
        self._recalled_at = time.monotonic()
