"""A sweep: every row of the truth, then of the listing and each index, by ranges of tokens.

If lineage is complete, the listing is read first: rows right there are not read again by the
scan of the truth. This finds no suspects; a sweep that is killed continues without it.

::

    range ─▶ worker: scan ─▶ glance ─▶ look ─▶ suspects ─▶ sieve ─▶ handed over ─▶ the range is done
                                                             └─▶ systematic: left, one finding

A range is done when its suspects are handed over or left. After a crash the ranges in flight and
those with suspects in the sieve are scanned again. When the whole truth has been read, and its
suspects are settled, lineage is complete. Once the listing was read too, it has every message
whose rows the truth lacks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from checkpoints.lineage import Lineage
from checkpoints.sweeps import AHEAD, RangeKey, SweepRecord, Sweeps, SweptRange
from reconcilers.declared.family import Family
from reconcilers.declared.raw import raw_shape
from reconcilers.rows.glance import can_expect
from reconcilers.rows.memory import Watching
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Micros
from reconcilers.words.tokens import TokenRange, token_ranges
from streaming.again.scan import Piece, SweptPiece, tables_of
from streaming.again.sieve import Sieve

log = logging.getLogger("reconciler")

ROUND = 10.0
"""Seconds that the ranges of one round should take, which are repeated after a crash."""
AT_FIRST, MOST_AT_ONCE = 2, 128
LONGEST_WAIT = 60.0
GIVES_UP_AFTER = 10
"""Failed rounds in a row before a sweep gives up; the longest wait is `LONGEST_WAIT` (s)."""

LISTING_NOT_KNOWN = "what only the listing has is not all known"


class SweepProgress(Protocol):
    """Shows how far a sweep or replay is."""

    def table(self, name: str, done: int, ranges: int) -> None:
        """Begin a table, of whose ranges so many are done."""

    def round(self, ranges: int, rows: int, suspects: int) -> None:
        """Add what was just done."""

    def waiting(self, why: str) -> None:
        """Show why the work waits."""


class Interrupted(Exception):
    """The sweep or replay is stopped from outside; a sweep can be resumed."""


@dataclass(slots=True)
class SweepResult:
    """What a sweep has done. ``memory`` is why lineage is not complete, None if it is.

    ``systematic`` has a line for each finding that stands for many rows. ``unread`` are tokens that
    could not be read; ``unreadable`` counts rows that could not be looked at.
    """

    rows: int = 0
    suspects: int = 0
    unread: list[tuple[str, TokenRange, str]] = field(default_factory=list)
    memory: str | None = None
    systematic: tuple[str, ...] = ()
    unreadable: int = 0

    @property
    def is_all(self) -> bool:
        """Whether lineage is complete and every row was read and looked at."""
        return self.memory is None and not self.unread and not self.unreadable


@dataclass(frozen=True, slots=True)
class SweepMark:
    """Marks in lineage that the whole truth and the listing were read. ``delay`` is D (µs)."""

    lineage: Lineage
    delay: Micros

    def refused(self, sweep: SweepRecord) -> str | None:
        """Why this sweep does not make lineage complete, None when it may."""
        return self._why(self.lineage.watching(), sweep)

    def _why(self, watching: Watching | None, sweep: SweepRecord) -> str | None:
        if watching is None:
            return "it is not known since when every change was received"
        if watching.sweeps_count_from(self.delay) > sweep.began_at:
            return "lineage was reset, or a loss was found, since this sweep began: sweep again"
        return None

    def set(self, sweep: SweepRecord, at: Micros) -> str | None:
        """Mark that the whole truth was read by a time (µs).

        Returns why not if memory has ended or begun again meanwhile, else None.
        """
        watching = self.lineage.watching()
        why = self._why(watching, sweep)
        if why is None and watching is not None:
            self.lineage.mark_swept(at, watching.since)
            why = self.refused(sweep)
        if why is None:
            log.info("the whole truth has been read: lineage is complete")
        return why

    def set_listed(self, sweep: SweepRecord, at: Micros) -> None:
        """Mark that the listing was read by a time (µs), unless memory has begun again meanwhile.

        The first mark stays: a later one would devalue the deletes received in between.
        """
        watching = self.lineage.watching()
        if watching is None or self._why(watching, sweep) is not None:
            return
        if watching.believed(self.delay).listed_at is None:
            self.lineage.mark_listed(at, watching.since)


@dataclass(slots=True)
class Sweeper:
    """Sweeps one family. ``scan`` scans pieces on the workers.

    ``wait`` waits (s), and raises `Interrupted` if the sweep is stopped; each round calls it.
    """

    family: Family
    sweeps: Sweeps
    mark: SweepMark
    scan: Callable[[Sequence[Piece]], Sequence[SweptPiece]]
    sieve: Sieve
    progress: SweepProgress
    wait: Callable[[float], None]
    clock: Callable[[], Micros]

    def run(self, sweep: SweepRecord) -> SweepResult:
        """Run or resume a sweep to its end. Raises `Interrupted`, `Unreachable`, `Refused`."""
        found, done = SweepResult(), self.sweeps.ranges(sweep)
        ranges = token_ranges(sweep.ranges)
        self.sieve.begin(sweep, sum(each.suspects for each in done.values()))
        for table in tables_of(self.family):
            left = [
                Piece(table, number, tokens)
                for number, tokens in enumerate(ranges)
                if (table, number) not in done
            ]
            if table == self.family.truth.table and self._reads_ahead(done):
                self._read_ahead(sweep, ranges)
            self.progress.table(table, len(ranges) - len(left), len(ranges))
            self._table(left, partial(self._take, sweep, found))
            self.sweeps.swept(sweep, self.sieve.table_ended(table))
            if table == self.family.truth.table and sweep.truth_swept_at is None:
                found.memory = self._truth_ended(sweep, found)
            if table == self.family.listing.table and found.is_all:
                self.mark.set_listed(sweep, self.clock())
        for each in done.values():
            found.rows += each.rows
            found.suspects += each.suspects
        if not done and not found.unread:
            self.sieve.ended(sweep)
        found.systematic = tuple(self.sieve.lines())
        if found.memory is None:  # it may have begun again since
            found.memory = self.mark.refused(sweep)
        self.sweeps.end(sweep, self.clock(), _outcome(found))
        return found

    def _reads_ahead(self, done: Collection[RangeKey]) -> bool:
        """Whether to read ahead: only before any range is done, and after a sweep of the truth.

        A sweep that is killed meanwhile does not repeat it, so that it ends even if killed often.
        """
        watching = self.mark.lineage.watching()
        swept = watching is not None and watching.believed(self.mark.delay).swept_at is not None
        shape = raw_shape(self.family)
        can = shape is not None and can_expect(self.family, shape)
        return can and swept and not done

    def _read_ahead(self, sweep: SweepRecord, ranges: Sequence[TokenRange]) -> None:
        """Read the listing ahead. A range that fails is skipped; if a whole round fails, stop."""
        listing = self.family.listing.table
        self.sweeps.swept(sweep, {(listing + AHEAD, 0): SweptRange(0, 0)})
        pieces = [Piece(listing, number, each, ahead=True) for number, each in enumerate(ranges)]
        self.progress.table(listing + AHEAD, 0, len(ranges))
        at_once = AT_FIRST
        while pieces:
            self.wait(0)
            began = time.monotonic()
            failed = self._round(pieces[:at_once], lambda _: None)
            if len(failed) == len(pieces[:at_once]):
                return
            pieces = pieces[at_once:]
            at_once = _next(at_once, time.monotonic() - began)

    def _table(self, left: Sequence[Piece], take: Callable[[Sequence[SweptPiece]], None]) -> None:
        """Scan pieces in rounds, and pass what each finds to ``take``."""
        at_once, failures = AT_FIRST, 0
        while left:
            self.wait(0)
            began = time.monotonic()
            failed = self._round(left[:at_once], take)
            took, more = time.monotonic() - began, left[at_once:]
            if len(failed) < len(left[:at_once]):
                failures, at_once = 0, _next(at_once, took)
            else:
                failures, at_once = failures + 1, AT_FIRST
            if failures > GIVES_UP_AFTER:
                raise Unreachable("nothing could be read in many rounds: go on with --resume")
            left = [*failed, *more]
            if failed:
                self.wait(min(2.0**failures, LONGEST_WAIT))

    def _round(
        self, pieces: Sequence[Piece], take: Callable[[Sequence[SweptPiece]], None]
    ) -> Sequence[Piece]:
        """Scan pieces once; returns those that have failed."""
        now = self.clock()
        swept = self.scan([replace(each, at=now) for each in pieces])
        good = [each for each in swept if each.failed is None]
        take(good)
        rows, suspects = _sums(good)
        self.progress.round(len(good), rows, suspects)
        failed = [each for each in swept if each.failed is not None]
        if failed:
            self.progress.waiting(str(failed[0].failed))
        return [each.piece for each in failed]

    def _take(self, sweep: SweepRecord, found: SweepResult, good: Sequence[SweptPiece]) -> None:
        self.sweeps.swept(sweep, self.sieve.take(good))
        for each in good:
            found.unread += [(each.piece.table, tokens, why) for tokens, why in each.unread]
            found.unreadable += len(each.unreadable)
        rows, suspects = _sums(good)
        found.rows += rows
        found.suspects += suspects

    # --- the end of the truth

    def _truth_ended(self, sweep: SweepRecord, found: SweepResult) -> str | None:
        """Mark memory as whole; returns why not, None if it is."""
        read_at = self.clock()
        why = f"{len(found.unread)} ranges of tokens cannot be read" if found.unread else None
        why = why or self.mark.refused(sweep)
        if why is None and not self.sieve.sink.settled():
            why = "what was found is not settled: no stream runs"
        if why is None:  # memory may have ended meanwhile
            why = self.mark.set(sweep, read_at)
        if why is None:
            self.sweeps.truth_swept(sweep, read_at)
            self.sieve.sink.revisit()
        return why


def _next(at_once: int, took: float) -> int:
    """How many ranges the next round has, after ``at_once`` of them ``took`` so long (s)."""
    fits = int(at_once * ROUND / max(took, 0.001))
    return max(AT_FIRST, min(MOST_AT_ONCE, 2 * at_once, fits))


def _sums(swept: Sequence[SweptPiece]) -> tuple[int, int]:
    """How many rows, and how many differences."""
    return sum(each.rows for each in swept), sum(each.differ for each in swept)


def _outcome(found: SweepResult) -> str:
    whole = "lineage is complete"
    if found.memory is not None:
        whole = f"lineage is not complete: {found.memory}"
    elif not found.is_all:
        whole += f", but {LISTING_NOT_KNOWN}"
    unread = f", {len(found.unread)} ranges unread" if found.unread else ""
    many = f", {len(found.systematic)} systematic" if found.systematic else ""
    return f"{found.rows} rows, {found.suspects} suspects{many}{unread}; {whole}"
