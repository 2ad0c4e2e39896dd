"""Mailboxes whose counters are still to be scheduled; no more of them in memory than can be soon.

Each changed mailbox is marked in Cassandra before its change is told here. Those that find no room
are not kept: their marks are read again when there is room.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

from checkpoints.clock import HOUR
from checkpoints.tallies import marks_begin
from reconcilers.words.errors import ReconcilerError, Refused
from reconcilers.words.model import Micros
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.counter_row import CounterRows
from streaming.counters.schedule import CounterScheduler

log = logging.getLogger("reconciler")

REFUSED_FOR = 60.0
"""Seconds to leave mailboxes alone whose owner may not be read."""
MOST_KEPT = 100_000
"""Mailboxes in memory that changed lately: more are read again from their marks."""
MOST_PENDING = 200_000
"""Counters that are pending of each tally: while there are so many of all, mailboxes wait.

One tally that cannot be read or corrected, or that waits longer, never holds up the others.
"""
MARKS_AT_ONCE = 1_000


@dataclass(slots=True)
class MarkedHours:
    """Reads the mailboxes that were marked in some hours, page by page; ``marked`` reads one hour.

    A mailbox that is marked in several hours is returned once: a look at its counters sees all its
    changes. Hours that are added later return it again. Of more than `MOST_KEPT` mailboxes some are
    returned again. After an error the hour that it was in begins again.
    """

    marked: Callable[[int], Iterator[UUID]]
    _left: deque[int] = field(default_factory=deque)
    _reading: Iterator[UUID] | None = None
    _returned: set[UUID] = field(default_factory=set)

    def add(self, since: Micros, until: Micros) -> None:
        """Read the hours of this time (µs) too; again, if one is being read."""
        self._returned.clear()
        unread = set(islice(self._left, 0 if self._reading is None else 1, None))
        hours = range(since // HOUR, until // HOUR + 1)
        self._left.extend(each for each in hours if each not in unread)

    def next(self) -> list[UUID]:
        """Some mailboxes; none at the end. Raises as ``marked`` does."""
        while self._left:
            reading, self._reading = self._reading or self.marked(self._left[0]), None
            page = list(islice(reading, MARKS_AT_ONCE))
            if not page:
                self._left.popleft()
                continue
            self._reading = reading
            found = [each for each in page if each not in self._returned]
            if len(self._returned) + len(found) > MOST_KEPT:
                self._returned.clear()
            self._returned.update(found)
            if found:
                return found
        self._returned.clear()
        return []


@dataclass(slots=True)
class ChangedMailboxes:
    """Schedules the counters of changed mailboxes; at first of those that are marked already.

    All marks are read again whenever ``epoch`` changes: after a sweep, which marks all, or when a
    tally is kept in another table.
    """

    scheduler: CounterScheduler
    counters: CounterRows
    hours: MarkedHours
    epoch: Callable[[], object] = lambda: None
    _changed: set[UUID] = field(default_factory=set)
    _begun: bool = False
    _epoch: object = None
    _refused_until: float = float("-inf")

    def __len__(self) -> int:
        """How many mailboxes are left in memory."""
        return len(self._changed)

    def begin(self) -> None:
        """Read the marks from before this process started, once."""
        if not self._begun:
            self._epoch = self.epoch()
            self._read_since(0)
            self._begun = True

    def look_for_epoch(self) -> None:
        """Read all marks again if the epoch has changed."""
        epoch = self.epoch()
        if epoch != self._epoch:
            self._read_since(0)
            self._epoch = epoch

    def take(self, batch: BatchSummary) -> None:
        """Add the mailboxes of a batch; if there is no room, their marks are read later."""
        if len(self._changed) + len(batch.changes) > MOST_KEPT:
            self._read_since(batch.since)
        else:
            self._changed.update(batch.changes)

    def _read_since(self, at: Micros) -> None:
        """Read the marks from this time (µs) on: clocks may differ by the delay, or be set back."""
        now, apart = self.scheduler.clock(), self.scheduler.rules.delay
        self.hours.add(max(min(at, now) - apart, marks_begin(now)), now + apart)

    def schedule(self, end: float) -> None:
        """Schedule the counters of these mailboxes until ``end`` (monotonic, s)."""
        if time.monotonic() < self._refused_until:
            return
        while time.monotonic() <= end and self.scheduler.fewest < MOST_PENDING:
            if not self._changed:
                self._changed.update(self.hours.next())
            if not self._changed:
                return
            mailboxid = self._changed.pop()
            try:
                self.scheduler.changed(self.counters.of_mailbox(mailboxid))
            except Refused as refused:
                self._changed.add(mailboxid)
                log.warning("whose mailboxes are is not known: %s", refused)
                self._refused_until = time.monotonic() + REFUSED_FOR
                return
            except ReconcilerError:
                self._changed.add(mailboxid)
                raise
