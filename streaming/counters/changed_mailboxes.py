"""Schedules the counters of changed mailboxes that may be wrong: their mailboxes are screened."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from reconcilers.words.errors import Refused
from streaming.counters.counter_row import CounterRows
from streaming.counters.schedule import CounterScheduler
from streaming.counters.screening import ScreenMailboxes
from streaming.counters.screening_queue import ScreeningQueue

log = logging.getLogger("reconciler")

REFUSED_FOR = 60.0
"""Seconds to leave mailboxes alone whose owner may not be read."""
NOT_YET = object()
"""Before the first epoch."""


@dataclass(slots=True)
class ChangedMailboxes:
    """Screens changed mailboxes, at first those that are marked already.

    At most ``at_once`` are screened together: then batches have their turn. All marks are read
    again whenever ``epoch`` changes: after a sweep, which marks all, or when a tally is kept in
    another table.
    """

    scheduler: CounterScheduler
    counters: CounterRows
    queue: ScreeningQueue
    screen: ScreenMailboxes
    at_once: int
    epoch: Callable[[], object] = lambda: None
    _epoch: object = NOT_YET
    _refused_until: float = float("-inf")

    def look_for_epoch(self) -> None:
        """Read all marks at the first call, and whenever the epoch has changed."""
        epoch = self.epoch()
        if epoch != self._epoch:
            self.queue.read_all()
            self._epoch = epoch

    def schedule(self, end: float) -> None:
        """Screen mailboxes, and schedule their counters, until ``end`` (monotonic, s)."""
        if time.monotonic() < self._refused_until:
            return
        if self.scheduler.pending.has_room_again():
            self.queue.read_all()
        while time.monotonic() <= end and self.scheduler.pending.has_room:
            some = self.queue.next(self.at_once)
            if not some:
                return
            try:
                if self._schedule(some):
                    return
            except Refused as refused:
                log.warning("whose mailboxes are is not known: %s", refused)
                self._refused_until = time.monotonic() + REFUSED_FOR
                return

    def _schedule(self, some: Sequence[UUID]) -> set[UUID]:
        """Those for which there was no time. After an error those not scheduled are kept."""
        screened = self.screen(some)
        for tally, number in screened.agree.items():
            self.scheduler.count(tally, "agrees", number)
        kept = screened.left | screened.suspected.keys()
        self.queue.done([each for each in some if each not in kept])
        for mailboxid, tallies in screened.suspected.items():
            rows = self.counters.of_mailbox(mailboxid)
            self.scheduler.changed(row for row in rows if row.tally.name in tallies)
            self.queue.done([mailboxid])
        return screened.left
