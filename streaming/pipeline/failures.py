"""A slice that fails repeatedly is taken in ever smaller parts, down to one record.

If the server says which key fails, only that key is affected (`reconcilers.rows.halves`). If reads
only time out, the key is not known. The slice's records are then tried in parts, so that the others
are looked at. A record that fails alone, long after all servers should be back, is given up: it
becomes a dead letter.

A process that a slice kills reports nothing. While a slice is *suspected*, each attempt is
therefore stored before it is made. That is so after a failure, and after an unclean end, until
something is settled. A stream without failures stores nothing here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from checkpoints.bookmarks import Place, Positions
from checkpoints.failing_slices import FailingSlice, FailingSlices
from reconcilers.words.errors import Refused, Retryable
from reconcilers.words.model import SECOND, Micros
from streaming.pipeline.slices import Slice

log = logging.getLogger("reconciler")

TRIES = 3
"""Attempts at a whole slice; a failing part is cut at once."""
PARTS = 16
TRIES_ALONE = 5
ALONE_FOR: Micros = 600 * SECOND
"""A record is given up after `TRIES_ALONE` failures over this time (µs)."""


@dataclass(slots=True)
class SliceFailures:
    """What has failed since something was last settled; ``store`` keeps it for ``stream``.

    If the store does not answer, this process counts in memory.
    """

    store: FailingSlices
    stream: str
    _known: FailingSlice = field(default_factory=FailingSlice)
    _suspected: bool = False
    _before: FailingSlice | None = None
    _read: bool = False
    _unclean: bool = False

    def begin(self, settled: Positions) -> None:
        """Continue after ``settled``, with the stored failures of the slice that begins there.

        Failures of another slice are dropped: its offsets are gone, or settled. After a loss, in
        the same process, nothing is read.
        """
        self._known, self._suspected = FailingSlice(), True
        try:
            left = None if self._read else self.store.of(self.stream)
        except (Retryable, Refused) as failed:
            log.warning("what failed before this start is not known: %s", failed)
            return
        self._read, self._suspected = True, left is not None
        self._unclean = self._unclean or left is not None
        if left is not None and left.name == Slice(settled, settled, 0, 0).name:
            self._known = left
        self._keep()

    def end(self) -> None:
        """Forget what is stored, if nothing fails: the process ends cleanly."""
        if not self._known.name and not self._known.most:
            try:
                self.store.forget(self.stream)
            except (Retryable, Refused) as failed:
                log.warning("the next start will watch its first slice: %s", failed)

    def begun(self, piece: Slice, now: Micros) -> None:
        """Store the attempt (µs) if the slice is suspected: it may kill this process."""
        if self._suspected:
            self._before = self._known
            self._count(piece, now)
            self._known = replace(self._known, unheard=self._known.unheard + 1)
            self._keep()

    def failed(self, piece: Slice, now: Micros) -> None:
        """Count a failure (µs) that this process survived."""
        if self._before is None:
            self._count(piece, now)
        else:
            self._known = replace(self._known, unheard=self._known.unheard - 1)
        self._suspected, self._before = True, None
        self._keep()

    def interrupted(self) -> None:
        """Take back the attempt: the stream was stopped, and the slice may be good."""
        if self._before is not None:
            self._known, self._before = self._before, None
            self._keep()

    def _count(self, piece: Slice, now: Micros) -> None:
        known = self._known
        if piece.name != known.name:
            known = FailingSlice(piece.name, since=now, most=known.most, until=known.until)
        self._known = replace(known, times=known.times + 1, end=piece.end)

    def done(self, settled: Positions) -> None:
        """Take in that everything before these positions is settled."""
        if not self._suspected:
            return
        most, until = self._known.most, self._known.until
        if all(settled.get(place, 0) >= end for place, end in until.items()):
            most, until = 0, {}
        self._known, self._before = FailingSlice(most=most, until=until), None
        self._suspected = most > 0
        if not self._suspected:
            self._keep()

    def _keep(self) -> None:
        try:
            self.store.keep(self.stream, self._known)
        except (Retryable, Refused) as failed:
            log.warning("this process alone knows what fails: %s", failed)

    @property
    def suspected(self) -> bool:
        """Whether something has failed since something was last settled.

        After an unclean end it stays true while this process lives: what killed the one before may
        come back.
        """
        return self._suspected or self._unclean

    # --- what is tried next

    def parts(self, piece: Slice, done_before: Micros) -> Iterator[Slice]:
        """The slice, in parts as far as a failing record keeps it from being settled.

        The last part has the slice's own ``done_before``; the parts before it have the one given.
        """
        self._cut(piece)
        begin = piece.begin
        while True:
            most = self._known.most
            end = _further(begin, self._failing(begin, piece.end), most) or piece.end
            yield Slice(
                begin, end, piece.read_at, piece.done_before if end == piece.end else done_before
            )
            if end == piece.end:
                return
            begin = end

    def _cut(self, piece: Slice) -> None:
        """Take the slice in parts, or in smaller parts, if it has failed as it is."""
        known = self._known
        if piece.name != known.name or known.times < (1 if known.most else TRIES):
            return
        records = replace(piece, end=known.end).records
        if records > 1:
            self._known = FailingSlice(most=max(1, records // PARTS), until=known.end)

    def _failing(self, begin: Positions, end: Positions) -> dict[Place, int]:
        """The positions from ``begin`` to ``end`` up to which the slice is taken in parts."""
        return {
            place: max(at, min(end[place], self._known.until.get(place, 0)))
            for place, at in begin.items()
        }

    def is_hopeless(self, piece: Slice, now: Micros) -> bool:
        """Whether the slice is one record that has failed often and long enough."""
        known = self._known
        alone = piece.records == 1 and piece.name == known.name
        return alone and known.times >= TRIES_ALONE and now - known.since >= ALONE_FOR

    def has_killed(self, piece: Slice) -> bool:
        """Whether so many attempts at the slice ended without a report that it is given up."""
        return piece.name == self._known.name and self._known.unheard >= TRIES_ALONE


def _further(begin: Positions, end: Positions, most: int) -> dict[Place, int] | None:
    """Positions so many records further, one partition after the other; None at the end."""
    at = dict(begin)
    for place, last in sorted(end.items()):
        step = min(most, last - at[place])
        at[place], most = at[place] + step, most - step
    return at if at != begin else None
