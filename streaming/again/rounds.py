"""The rounds of a sweep: which ranges are read next, in how many pieces, and up to how many rows.

::

    ranges left ─▶ a few long pieces ─▶ workers: each reads up to so many rows ─▶ what is left

The first round takes all ranges, so a small table is read in one. A large one leaves most of each
piece, and the next round takes more rows of more pieces. Ranges without an answer are read again,
in smaller pieces, when nothing else is left.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from typing import Protocol

from reconcilers.words.errors import Refused, Unreachable
from reconcilers.words.model import Micros
from streaming.again.pieces import Piece, SweptPiece

ROUND = 10.0
"""Seconds that one round should take, which is repeated after a crash."""
FEWEST_PIECES, AT_FIRST, MOST_PIECES = 2, 4, 8
"""Pieces of each table in a round."""
FEWEST_ROWS, MOST_ROWS = 5_000, 100_000
"""Rows of a piece, beyond which it ends with the range that it is in; see also `fewest_at`."""
FEWEST_RANGES, MOST_RANGES = 512, 65_536
"""Token ranges of each table, unless a setting gives the number."""
LONGEST_WAIT = 60.0
GIVES_UP_AFTER = 10
"""Failed rounds in a row before a sweep gives up; the longest wait is `LONGEST_WAIT` (s)."""


class SweepProgress(Protocol):
    """Shows how far a sweep or replay is."""

    def table(self, name: str, done: int, ranges: int) -> None:
        """Begin a table, of whose ranges so many are done."""

    def round(self, ranges: int, rows: int, suspects: int) -> None:
        """Add what was just done."""

    def waiting(self, why: str) -> None:
        """Show why the work waits."""


@dataclass(slots=True)
class RoundSize:
    """How much the next round reads of each table.

    That is so many ``pieces``, each of at most ``longest`` ranges, and of ``rows`` rows or a few
    more, but not of less than ``fewest``. ``mixed``: the pieces are chosen at random.
    """

    longest: int
    fewest: int
    pieces: int = AT_FIRST
    rows: int = 0
    mixed: bool = False

    def __post_init__(self) -> None:
        """Begin with the fewest rows."""
        self.rows = self.fewest

    def cut(self, left: Iterable[int]) -> list[range]:
        """Pieces of the ranges that are left, the longest halved while they are too few."""
        runs = [part for run in _runs(left) for part in _parts(run, self.longest)]
        while len(runs) < self.pieces and max(map(len, runs), default=1) > 1:
            at = runs.index(max(runs, key=len))
            runs[at : at + 1] = _parts(runs[at], -(-len(runs[at]) // 2))
        if self.mixed:
            random.shuffle(runs)
        return runs[: self.pieces]

    def fit(self, took: float) -> None:
        """Adapt to a round that ``took`` so long (s)."""
        fits = int(self.rows * ROUND / max(took, 0.001))
        self.pieces *= 2
        if fits < self.fewest:
            self.pieces = max(FEWEST_PIECES, self.pieces // 4)
        self.pieces = min(MOST_PIECES, self.pieces)
        self.rows = max(self.fewest, min(MOST_ROWS, 2 * self.rows, fits))
        self.longest *= 2

    def again(self, failed: Sequence[SweptPiece], good: Sequence[SweptPiece]) -> RoundSize:
        """How much of the failed pieces is read again: halves, or ranges if a whole round failed.

        They are mixed, because ranges that fail may be adjacent. If a whole round failed, the next
        round is of this size, too.
        """
        half = max(len(each.piece.numbers) for each in failed) // 2
        return RoundSize(max(1, half) if good else 1, self.fewest, mixed=True)


@dataclass(frozen=True, slots=True)
class SweepRounds:
    """Reads tables in rounds. ``scan`` scans pieces on the workers.

    ``wait`` waits (s), and raises if the sweep is stopped; each round calls it. A piece has
    ``fewest`` rows or more, if they are there.
    """

    scan: Callable[[Sequence[Piece]], Sequence[SweptPiece]]
    progress: SweepProgress
    wait: Callable[[float], None]
    clock: Callable[[], Micros]
    fewest: int = FEWEST_ROWS

    def read(
        self,
        left: Mapping[str, Iterable[int]],
        ranges: int,
        take: Callable[[Sequence[SweptPiece]], None],
        ended: Callable[[str], None],
    ) -> None:
        """Read what is left of some tables of so many ranges; pass what is found to ``take``.

        ``ended`` is called with each table when all of it was read. Raises `Unreachable` if nothing
        can be read for long, and `Refused` at the end if a table refuses.
        """
        todo, failures = {table: {*numbers} for table, numbers in left.items()}, 0
        first, *more = todo
        name, together = first + f" and {len(more)} more" * bool(more), ranges * len(todo)
        self.progress.table(name, together - sum(map(len, todo.values())), together)
        refused, open_tables = dict[str, str](), [*todo]
        rounds = self._rounds(todo, partial(Piece, ranges=ranges), take)
        for good, failed in chain([((), ())], rounds):  # a table may have nothing left
            refused |= {each.piece.table: str(each.failed) for each in failed if each.refused}
            for table in [each for each in open_tables if each in refused or not todo[each]]:
                todo[table].clear()
                open_tables.remove(table)
                if table not in refused:
                    ended(table)
            unanswered = [each for each in failed if not each.refused]
            failures = failures + 1 if unanswered and not good else 0
            if failures > GIVES_UP_AFTER:
                raise Unreachable("nothing could be read in many rounds: go on with --resume")
            if unanswered:
                self.wait(min(2.0**failures, LONGEST_WAIT))
        if refused:
            told = (f"{table} refuses to be read: {why}" for table, why in refused.items())
            raise Refused(f"{'; '.join(told)}; when it can be read, go on with --resume")

    def read_ahead(self, table: str, ranges: int, name: str) -> None:
        """Read a table ahead; ``name`` is shown. The first range of a failed piece is skipped.

        If a whole round fails, reading ahead ends.
        """
        todo = {table: {*range(ranges)}}
        self.progress.table(name, 0, ranges)
        piece = partial(Piece, ranges=ranges, ahead=True)
        for good, failed in self._rounds(todo, piece, lambda _: None):
            if failed and not good:
                return
            todo[table] -= {each.piece.numbers.start for each in failed}

    def _rounds(
        self,
        todo: Mapping[str, set[int]],
        piece: Callable[..., Piece],
        take: Callable[[Sequence[SweptPiece]], None],
    ) -> Iterator[tuple[Sequence[SweptPiece], Sequence[SweptPiece]]]:
        """Rounds until nothing is left ``todo``, with the pieces that were read or have failed.

        Ranges that have failed are read again after all others were tried.
        """
        size = then = RoundSize(max(map(len, todo.values()), default=1), self.fewest)
        tried = defaultdict[str, set[int]](set)
        while any(todo.values()):
            self.wait(0)
            began, now = time.monotonic(), self.clock()
            if all(left <= tried[table] for table, left in todo.items()):
                tried.clear()
                size = then
            swept = self.scan(
                [
                    piece(table, numbers, most=size.rows, at=now)
                    for table, left in todo.items()
                    for numbers in size.cut(left - tried[table])
                ]
            )
            good = [each for each in swept if each.failed is None]
            failed = [each for each in swept if each.failed is not None]
            take(good)
            for each in good:
                todo[each.piece.table].difference_update(each.piece.numbers)
            self._show(good)
            if failed:
                self.progress.waiting(str(failed[0].failed))
                for each in failed:
                    tried[each.piece.table].update(each.piece.numbers)
                then = size.again(failed, good)
                size = size if good else then
            else:
                size.fit(time.monotonic() - began)
            yield good, failed

    def _show(self, good: Sequence[SweptPiece]) -> None:
        ranges = sum(len(each.piece.numbers) for each in good)
        rows, differ = sum(each.rows for each in good), sum(each.differ for each in good)
        self.progress.round(ranges, rows, differ)


def fewest_at(rows_per_second: int) -> int:
    """The fewest rows of a piece: a first round of them takes `ROUND` (s) at this rate."""
    return max(1, min(FEWEST_ROWS, int(rows_per_second * ROUND / AT_FIRST)))


def ranges_for(rows: int, rows_per_second: int) -> int:
    """The token ranges of a table with so many rows: each is at most some `ROUND` (s) of work.

    That is also for one worker, which reads a whole range: no more than `MOST_ROWS`.
    """
    of_range = max(1, min(MOST_ROWS, int(rows_per_second * ROUND)))
    return min(MOST_RANGES, max(FEWEST_RANGES, -(-rows // of_range)))


def _runs(numbers: Iterable[int]) -> Iterator[range]:
    """Numbers as runs of adjacent ones."""
    for _, some in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in some]
        yield range(run[0], run[-1] + 1)


def _parts(run: range, most: int) -> list[range]:
    """A run in parts of at most so many numbers."""
    return [run[at : at + most] for at in range(0, len(run), most)]
