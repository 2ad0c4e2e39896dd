"""Ranges of offsets: what the settle window released, and up to where it was looked at.

Spark's state holds ranges only. A closed window names the offset of each partition up to which
records have waited for the delay. Everything before a *settled* position was looked at.
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
    """Up to where everything was looked at, and what has waited long enough since.

    It outlives a query that dies: what had waited by then does not wait again. ``failures`` keeps
    what could not be looked at.
    """

    failures: SliceFailures
    settled: dict[Place, int] = field(default_factory=dict)
    closed_until: Micros = 0
    _closed: list[Closed] = field(default_factory=list)
    _late: list[Closed] = field(default_factory=list)
    _done_before: Micros = 0

    def begin(self, settled: Positions) -> None:
        """Begin after these positions: another process has looked at everything before."""
        self.settled, self._closed, self._late = dict(settled), [], []
        self.failures.begin(self.settled)

    def close(self, windows: Iterable[Closed]) -> None:
        """Take in windows that have closed."""
        for each in windows:
            self.closed_until = max(self.closed_until, each.until)
            if self._waits(each):
                self._closed.append(each)

    def slices(self, most: int) -> list[Slice]:
        """The slices to look at now, of at most ``most`` records each."""
        closed = [*self._closed, *self._late]
        found: list[Slice] = []
        done_before = self._done_before
        for piece in slices(self.settled, closed, most, done_before):
            found += self.failures.parts(piece, done_before)
            done_before = piece.done_before
        return found

    def release(self, read: Positions) -> bool:
        """Treat what was read before these positions as waited for; whether any of it is left.

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
        """The empty slice after all that has closed: it moves time on without a record."""
        if not self._late:
            self._done_before = self.closed_until
        return Slice(self.settled, self.settled, self.closed_until, self._done_before)

    def done(self, piece: Slice) -> None:
        """Mark the slice as looked at."""
        self.settled = highest(self.settled, piece.end)
        self.failures.done(self.settled)
        self._done_before = piece.done_before
        self._closed = [each for each in self._closed if self._waits(each)]
        self._late = [each for each in self._late if self._waits(each)]

    def restart(self) -> dict[Place, int]:
        """Where a fresh query begins: after what has waited already; it reads all else again.

        The time up to which all was read is unknown until the first window closes. Records that
        were read before may be released later than they should, and the counters must take that
        into account.
        """
        self.closed_until = self._done_before = 0
        return self.waited()

    def waited(self) -> dict[Place, int]:
        """Up to where everything is settled, or has waited and is to be looked at."""
        return highest(self.settled, ends_of(self._closed))

    def _waits(self, closed: Closed) -> bool:
        return closed.place is not None and closed.end > self.settled.get(closed.place, 0)
