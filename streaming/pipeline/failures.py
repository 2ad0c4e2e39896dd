"""A slice that fails again and again is taken in ever smaller parts, down to one record. Pure.

What fails for one key is that key's (`reconcilers.halves`), where the server says so. Where a read
only times out, nobody says which key it was. Then the slice's records are tried in parts, so that
the others are looked at. One that fails alone, long after all servers should be back, is given up:
it becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from checkpoints.bookmarks import Place, Positions
from reconcilers.model import Micros
from streaming.pipeline.slices import Slice

TRIES = 3
"""Of a whole slice; a part of one that fails is cut at once."""
PARTS = 16
TRIES_ALONE = 5
ALONE_FOR: Micros = 600_000_000
"""One record is given up when it has failed so often, for so long."""


@dataclass(slots=True)
class SliceFailures:
    """What has failed since something was settled last."""

    _name: str = ""
    _times: int = 0
    _since: Micros = 0
    _most: int = 0
    _until: Positions = field(default_factory=dict)

    def failed(self, piece: Slice, now: Micros) -> None:
        """It was not settled (µs)."""
        if piece.name != self._name:
            self._name, self._times, self._since = piece.name, 0, now
        self._times += 1
        if piece.records > 1 and self._times >= (1 if self._most else TRIES):
            self._most, self._until = max(1, piece.records // PARTS), piece.end
            self._times, self._since = 0, now

    def done(self, settled: Positions) -> None:
        """Everything before these positions is settled."""
        if all(settled.get(place, 0) >= end for place, end in self._until.items()):
            self._most, self._until = 0, {}

    def parts(self, piece: Slice, done_before: Micros) -> Iterator[Slice]:
        """It, cut into parts as far as one of its records keeps it from being settled.

        The last part is done when the slice is; until then what was before it is (``done_before``).
        """
        begin = piece.begin
        while True:
            end = _further(begin, self._failing(begin, piece.end), self._most) or piece.end
            yield Slice(
                begin, end, piece.read_at, piece.done_before if end == piece.end else done_before
            )
            if end == piece.end:
                return
            begin = end

    def _failing(self, begin: Positions, end: Positions) -> dict[Place, int]:
        """How far of the way from one to the other is to be taken in parts."""
        return {
            place: max(at, min(end[place], self._until.get(place, 0)))
            for place, at in begin.items()
        }

    def is_hopeless(self, piece: Slice, now: Micros) -> bool:
        """Whether it is one record that has failed often enough, and for long enough."""
        alone = piece.records == 1 and piece.name == self._name
        return alone and self._times >= TRIES_ALONE and now - self._since >= ALONE_FOR


def _further(begin: Positions, end: Positions, most: int) -> dict[Place, int] | None:
    """So many records on, one partition after the other; None where there are none."""
    at = dict(begin)
    for place, last in sorted(end.items()):
        step = min(most, last - at[place])
        at[place], most = at[place] + step, most - step
    return at if at != begin else None
