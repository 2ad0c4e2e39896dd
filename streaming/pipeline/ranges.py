"""Ranges of offsets: what the settle window let out, and up to where it has been looked at.

Spark's state holds ranges only. A closed window says up to which offset a partition's records have
waited for the delay. *Settled* is a position in each partition: everything before it has been
looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from checkpoints.bookmarks import Place, Positions
from reconcilers.words.model import Micros
from streaming.pipeline.failures import SliceFailures
from streaming.pipeline.slices import Closed, Slice, ends_of, highest, slices


@dataclass(slots=True)
class Ranges:
    """Up to where everything has been looked at, and what has waited long enough since.

    It outlives a query that dies: what had waited by then need not wait again. ``failures`` knows
    what could not be looked at.
    """

    failures: SliceFailures
    settled: dict[Place, int] = field(default_factory=dict)
    closed_until: Micros = 0
    _closed: list[Closed] = field(default_factory=list)
    _late: list[Closed] = field(default_factory=list)
    _done_before: Micros = 0

    def begin(self, settled: Positions) -> None:
        """Everything before these positions has been looked at, in another process."""
        self.settled, self._closed, self._late = dict(settled), [], []
        self.failures.begin(self.settled)

    def close(self, windows: Iterable[Closed]) -> None:
        """Windows that have closed."""
        for each in windows:
            self.closed_until = max(self.closed_until, each.until)
            if self._waits(each):
                self._closed.append(each)

    def slices(self, most: int) -> list[Slice]:
        """What is to be looked at now."""
        closed = [*self._closed, *self._late]
        found: list[Slice] = []
        done_before = self._done_before
        for piece in slices(self.settled, closed, most, done_before):
            found += self.failures.parts(piece, done_before)
            done_before = piece.done_before
        return found

    def release(self, read: Positions) -> bool:
        """What was read before these positions has waited, whatever came out; whether any is left.

        May be called while a slice is looked at.
        """
        known = self.waited()
        self._late = [
            Closed(self.closed_until, place, end)
            for place, end in read.items()
            if end > known.get(place, 0)
        ]
        return bool(self._late)

    def nothing_left(self) -> Slice:
        """The empty slice behind all that has closed: how far time has come without a record."""
        if not self._late:
            self._done_before = self.closed_until
        return Slice(self.settled, self.settled, self.closed_until, self._done_before)

    def done(self, piece: Slice) -> None:
        """It has been looked at."""
        self.settled = highest(self.settled, piece.end)
        self.failures.done(self.settled)
        self._done_before = piece.done_before
        self._closed = [each for each in self._closed if self._waits(each)]
        self._late = [each for each in self._late if self._waits(each)]

    def restart(self) -> dict[Place, int]:
        """A fresh query begins here, after what has waited already; all else it reads again.

        So how far time has come is not known until its first window closes: what was read before
        may come out later than its own time says, and the counters must hear of that.
        """
        self.closed_until = self._done_before = 0
        return self.waited()

    def waited(self) -> dict[Place, int]:
        """Up to where everything is settled, or has waited and is to be looked at."""
        return highest(self.settled, ends_of(self._closed))

    def _waits(self, closed: Closed) -> bool:
        return closed.place is not None and closed.end > self.settled.get(closed.place, 0)
