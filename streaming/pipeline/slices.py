"""Closed windows of offsets, cut into slices to be looked at together. Pure.

A slice always begins at the settled positions. An offset that no window named (its rows were
dropped, a clock stepped back) is therefore read with the next one that does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from checkpoints.bookmarks import Place, Positions
from reconcilers.words.model import Micros


@dataclass(frozen=True, slots=True)
class Closed:
    """A window that has closed, for one partition; ``place`` is None if it had no record.

    ``until`` is the window's end (µs): all that was read before has waited. ``end`` is the offset
    after its last record.
    """

    until: Micros
    place: Place | None = None
    end: int = 0


@dataclass(frozen=True, slots=True)
class Slice:
    """Records that are looked at together: from ``begin`` to before ``end``, by partition.

    They were read until ``read_at`` (µs). After the slice, everything read before ``done_before``
    (µs) has been looked at; that is earlier than ``read_at`` if a window is cut.
    """

    begin: Positions
    end: Positions
    read_at: Micros
    done_before: Micros

    @property
    def name(self) -> str:
        """A name made of the settled positions, the same for each attempt, whatever its end."""
        places = ";".join(
            f"{topic}/{part}@{at}" for (topic, part), at in sorted(self.begin.items())
        )
        return hashlib.sha256(places.encode()).hexdigest()[:16]

    @property
    def ranges(self) -> dict[Place, tuple[int, int]]:
        """First offset and the one after the last, of each partition with something to read."""
        return {
            place: (self.begin[place], end)
            for place, end in self.end.items()
            if end > self.begin[place]
        }

    @property
    def whole(self) -> bool:
        """Whether everything that was read with its records is looked at after the slice."""
        return self.done_before >= self.read_at

    @property
    def records(self) -> int:
        """How many offsets it spans."""
        return _records(self.begin, self.end)


def slices(
    settled: Positions, closed: Iterable[Closed], most: int, done_before: Micros = 0
) -> Iterator[Slice]:
    """The closed windows in slices of at most ``most`` records, the oldest first.

    Everything that was read before ``done_before`` (µs) was looked at already. Slices end at
    windows, with all partitions of a window together: events that were read together are looked at
    together. A window with more than ``most`` records is cut in proportion over its partitions.
    """
    closed = list(closed)
    begin = {**dict.fromkeys(ends_of(closed), 0), **settled}
    wanted = begin
    for until, ends in _by_window(closed):
        wider = highest(wanted, ends)
        if _records(begin, wanted) and _records(begin, wider) > most:
            yield Slice(begin, wanted, done_before, done_before)
            begin = wanted
        for cut in _cuts(begin, wider, most):
            yield Slice(begin, cut, until, done_before)
            begin = cut
        wanted, done_before = wider, max(until, done_before)
    if _records(begin, wanted):
        yield Slice(begin, wanted, done_before, done_before)


def _by_window(closed: Iterable[Closed]) -> Iterator[tuple[Micros, dict[Place, int]]]:
    until = attrgetter("until")
    for end, windows in groupby(sorted(closed, key=until), key=until):
        yield end, ends_of(windows)


def ends_of(closed: Iterable[Closed]) -> dict[Place, int]:
    """The highest offset of each partition."""
    ends: dict[Place, int] = {}
    for each in closed:
        if each.place is not None:
            ends[each.place] = max(ends.get(each.place, 0), each.end)
    return ends


def highest(one: Positions, other: Positions) -> dict[Place, int]:
    """The higher position of each partition."""
    return {place: max(one.get(place, 0), other.get(place, 0)) for place in {**one, **other}}


def _records(begin: Positions, end: Positions) -> int:
    return sum(max(0, offset - begin.get(place, 0)) for place, offset in end.items())


def _cuts(begin: Positions, end: Positions, most: int) -> Iterator[dict[Place, int]]:
    """Positions on the way from ``begin`` to ``end``, at most ``most`` records apart."""
    steps = -(-_records(begin, end) // most)
    for step in range(1, steps):
        yield {
            place: begin[place] + (offset - begin[place]) * step // steps
            for place, offset in end.items()
        }
