"""A slice that fails again and again is taken in ever smaller parts, down to one record.

What fails for one key is that key's (`reconcilers.rows.halves`), if the server says so. If a read
only times out, it is not known which key it was. Then the slice's records are tried in parts, so
that the others are looked at. One that fails alone, long after all servers should be back, is given
up: it becomes a dead letter.

A process that is killed by a slice tells nothing. So while a slice is *suspected* each attempt is
kept before it is made: after one that failed, and at a start after an end that was not clean, until
something is settled. A stream where nothing fails keeps nothing for its slices.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from checkpoints.bookmarks import Place, Positions
from checkpoints.failing import FailingSlice, FailingSlices
from reconcilers.words.errors import Refused, Retryable
from reconcilers.words.model import SECOND, Micros
from streaming.pipeline.slices import Slice

log = logging.getLogger("reconciler")

TRIES = 3
"""Of a whole slice; a part of one that fails is cut at once."""
PARTS = 16
TRIES_ALONE = 5
ALONE_FOR: Micros = 600 * SECOND
"""One record is given up when it has failed so often, for so long."""


@dataclass(slots=True)
class SliceFailures:
    """What has failed since something was settled last; ``store`` keeps it for ``stream``.

    Where the store does not answer, this process counts by itself.
    """

    store: FailingSlices
    stream: str
    _known: FailingSlice = field(default_factory=FailingSlice)
    _suspected: bool = False
    _before: FailingSlice | None = None
    _read: bool = False
    _unclean: bool = False

    def begin(self, settled: Positions) -> None:
        """A process goes on after what is settled, with what the one before has left of that slice.

        What was left of another is of offsets that are gone, or settled since. After a loss, in the
        same process, nothing is left.
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
        """The process ends as it should."""
        if not self._known.name and not self._known.most:
            try:
                self.store.forget(self.stream)
            except (Retryable, Refused) as failed:
                log.warning("the next start will watch its first slice: %s", failed)

    def begun(self, piece: Slice, now: Micros) -> None:
        """It is tried (µs): kept where it is suspected, for this process may be killed by it."""
        if self._suspected:
            self._before = self._known
            self._count(piece, now)
            self._known = replace(self._known, unheard=self._known.unheard + 1)
            self._keep()

    def failed(self, piece: Slice, now: Micros) -> None:
        """It was not settled (µs), and this process lives."""
        if self._before is None:
            self._count(piece, now)
        else:
            self._known = replace(self._known, unheard=self._known.unheard - 1)
        self._suspected, self._before = True, None
        self._keep()

    def interrupted(self) -> None:
        """The stream was stopped meanwhile, which says nothing of the slice."""
        if self._before is not None:
            self._known, self._before = self._before, None
            self._keep()

    def _count(self, piece: Slice, now: Micros) -> None:
        known = self._known
        if piece.name != known.name:
            known = FailingSlice(piece.name, since=now, most=known.most, until=known.until)
        self._known = replace(known, times=known.times + 1, end=piece.end)

    def done(self, settled: Positions) -> None:
        """Everything before these positions is settled."""
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
        """Whether something has failed since something was settled last.

        After an end that was not clean, for as long as this process lives: what killed the one
        before may come again later.
        """
        return self._suspected or self._unclean

    # --- what is tried next

    def parts(self, piece: Slice, done_before: Micros) -> Iterator[Slice]:
        """It, cut into parts as far as one of its records keeps it from being settled.

        The last part is done when the slice is; until then what was before it is (``done_before``).
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
        """Take it in parts, or in smaller ones, where it has failed as it is."""
        known = self._known
        if piece.name != known.name or known.times < (1 if known.most else TRIES):
            return
        records = replace(piece, end=known.end).records
        if records > 1:
            self._known = FailingSlice(most=max(1, records // PARTS), until=known.end)

    def _failing(self, begin: Positions, end: Positions) -> dict[Place, int]:
        """How far of the way from one to the other is to be taken in parts."""
        return {
            place: max(at, min(end[place], self._known.until.get(place, 0)))
            for place, at in begin.items()
        }

    def is_hopeless(self, piece: Slice, now: Micros) -> bool:
        """Whether it is one record that has failed often enough, and for long enough."""
        known = self._known
        alone = piece.records == 1 and piece.name == known.name
        return alone and known.times >= TRIES_ALONE and now - known.since >= ALONE_FOR

    def has_killed(self, piece: Slice) -> bool:
        """Whether nothing was heard of so many attempts at it that it is not to be tried again."""
        return piece.name == self._known.name and self._known.unheard >= TRIES_ALONE


def _further(begin: Positions, end: Positions, most: int) -> dict[Place, int] | None:
    """So many records on, one partition after the other; None where there are none."""
    at = dict(begin)
    for place, last in sorted(end.items()):
        step = min(most, last - at[place])
        at[place], most = at[place] + step, most - step
    return at if at != begin else None
