"""Which mailboxes are due for screening: no more of them in memory than can be screened soon.

Each changed mailbox is marked in Cassandra before its change is told here. Those that find no room
are not kept: their marks are read again when there is room.

A mailbox is screened when its changes have been gathered for `tally.window`, and again when all
that was in flight then has been written. For what is in flight may hide an error of its own size.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

from checkpoints.clock import HOUR
from checkpoints.tallies import marks_begin
from reconcilers.words.model import Micros
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.look_rules import LookRules

MOST_KEPT = 100_000
"""Mailboxes in memory that changed lately: more are read again from their marks."""
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
class ScreeningQueue:
    """The mailboxes that are due. ``clock`` is the wall clock (µs)."""

    hours: MarkedHours
    clock: Callable[[], Micros]
    rules: LookRules
    _gathered: set[UUID] = field(default_factory=set)
    _gathered_until: float = float("-inf")
    _due: set[UUID] = field(default_factory=set)
    _next_hour: int = field(init=False)
    """The first hour whose marks are to be read again when all of it is written."""

    def __post_init__(self) -> None:
        self._next_hour = (self.clock() - self.rules.latest) // HOUR

    def __len__(self) -> int:
        """How many mailboxes are in memory."""
        return len(self._due) + len(self._gathered)

    def read_all(self) -> None:
        """Read all marks that are stored."""
        self._read_since(0)

    def take(self, batch: BatchSummary) -> None:
        """Add the mailboxes of a batch; if there is no room, their marks are read later."""
        if len(self) + len(batch.changes) > MOST_KEPT:
            self._read_since(batch.since)
        else:
            self._gathered.update(batch.changes)

    def next(self, most: int) -> list[UUID]:
        """Up to ``most`` mailboxes that are due; none at the end. They stay until `done`."""
        self._end_window()
        self._read_again()
        while len(self._due) < most and (marked := self.hours.next()):
            self._due.update(marked)
        return list(islice(self._due, most))

    def done(self, mailboxids: Collection[UUID]) -> None:
        """Remove mailboxes that were screened."""
        self._due.difference_update(mailboxids)

    def _read_since(self, at: Micros) -> None:
        """Read the marks from this time (µs) on: clocks may differ by the delay, or be set back."""
        now, apart = self.clock(), self.rules.delay
        self.hours.add(max(min(at, now) - apart, marks_begin(now)), now + apart)

    def _end_window(self) -> None:
        now = time.monotonic()
        if now >= self._gathered_until:
            self._due |= self._gathered
            self._gathered.clear()
            self._gathered_until = now + self.rules.window / 1e6

    def _read_again(self) -> None:
        now = self.clock()
        ended = (now - self.rules.latest - self.rules.delay) // HOUR
        if ended > self._next_hour:
            self.hours.add(max(self._next_hour * HOUR, marks_begin(now)), ended * HOUR - 1)
        if ended > self._next_hour or ended < self._next_hour - 1:  # a clock was set back
            self._next_hour = ended
