"""Ranges of offsets: what the settle window let out, cut into slices to be looked at. Pure.

Spark's state holds ranges only. A closed window says up to which offset a partition's records have
waited for the delay. *Settled* is a position in each partition: everything before it has been
looked at. A slice always begins there, so an offset that no window named (its rows were dropped, a
clock stepped back) is read with the next one that does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from checkpoints.bookmarks import Place, Positions
from reconcilers.model import Micros


@dataclass(frozen=True, slots=True)
class Closed:
    """A window that has closed, as far as it concerns one partition; None: no record at all.

    ``until`` is the window's end (µs): all that was read before has waited. ``end`` is the offset
    after its last record.
    """

    until: Micros
    place: Place | None = None
    end: int = 0


@dataclass(frozen=True, slots=True)
class Slice:
    """Records that are looked at together: from ``begin`` to before ``end``, by partition.

    They were read until ``read_at`` (µs). When the slice is done, everything that was read before
    ``done_before`` (µs) has been looked at: that is earlier where a window is cut.
    """

    begin: Positions
    end: Positions
    read_at: Micros
    done_before: Micros

    @property
    def name(self) -> str:
        """The same when it is done again, wherever it is cut off then: what is settled names it."""
        places = ";".join(
            f"{topic}/{part}@{at}" for (topic, part), at in sorted(self.begin.items())
        )
        return hashlib.sha256(places.encode()).hexdigest()[:16]

    @property
    def ranges(self) -> dict[Place, tuple[int, int]]:
        """First offset and the one after the last, where there is anything to read."""
        return {
            place: (self.begin[place], end)
            for place, end in self.end.items()
            if end > self.begin[place]
        }

    @property
    def records(self) -> int:
        """How many offsets it spans."""
        return _records(self.begin, self.end)


def slices(
    settled: Positions, closed: Iterable[Closed], most: int, done_before: Micros = 0
) -> Iterator[Slice]:
    """What the closed windows let out, in slices of at most ``most`` records, the oldest first.

    Everything that was read before ``done_before`` (µs) has been looked at already. Slices are cut
    along windows, all partitions of a window together: events that were read together are looked at
    together. A window beyond the bound is cut in proportion over its partitions.
    """
    closed = list(closed)
    begin = {**dict.fromkeys(_ends(closed), 0), **settled}
    wanted = begin
    for until, ends in _by_window(closed):
        wider = _highest(wanted, ends)
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
    for until, windows in groupby(sorted(closed, key=_until), key=_until):
        yield until, _ends(windows)


def _until(closed: Closed) -> Micros:
    return closed.until


def _ends(closed: Iterable[Closed]) -> dict[Place, int]:
    """The highest offset of each partition."""
    ends: dict[Place, int] = {}
    for each in closed:
        if each.place is not None:
            ends[each.place] = max(ends.get(each.place, 0), each.end)
    return ends


def _highest(one: Positions, other: Positions) -> dict[Place, int]:
    return {place: max(one.get(place, 0), other.get(place, 0)) for place in {**one, **other}}


def _records(begin: Positions, end: Positions) -> int:
    return sum(max(0, offset - begin.get(place, 0)) for place, offset in end.items())


def _cuts(begin: Positions, end: Positions, most: int) -> Iterator[dict[Place, int]]:
    """Positions on the way from one to the other, not more than ``most`` records apart."""
    steps = -(-_records(begin, end) // most)
    for step in range(1, steps):
        yield {
            place: begin[place] + (offset - begin[place]) * step // steps
            for place, offset in end.items()
        }


@dataclass(slots=True)
class Ranges:
    """Up to where everything has been looked at, and what has waited long enough since.

    It outlives a query that dies: what had waited by then need not wait again.
    """

    settled: dict[Place, int] = field(default_factory=dict)
    closed_until: Micros = 0
    _closed: list[Closed] = field(default_factory=list)
    _late: list[Closed] = field(default_factory=list)
    _done_before: Micros = 0

    def begin(self, settled: Positions) -> None:
        """Everything before these positions has been looked at, in another process."""
        self.settled, self._closed, self._late = dict(settled), [], []

    def close(self, windows: Iterable[Closed]) -> None:
        """Windows that have closed."""
        for each in windows:
            self.closed_until = max(self.closed_until, each.until)
            if self._waits(each):
                self._closed.append(each)

    def slices(self, most: int) -> list[Slice]:
        """What is to be looked at now."""
        closed = [*self._closed, *self._late]
        return list(slices(self.settled, closed, most, self._done_before))

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
        self.settled = _highest(self.settled, piece.end)
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
        return _highest(self.settled, _ends(self._closed))

    def _waits(self, closed: Closed) -> bool:
        return closed.place is not None and closed.end > self.settled.get(closed.place, 0)
