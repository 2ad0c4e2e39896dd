"""A sweep: every row of the truth, then of the listing and the indexes, by ranges of tokens.

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
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from checkpoints.lineage import Lineage
from checkpoints.sweeps import AHEAD, RangeKey, SweepRecord, Sweeps, SweptRange
from reconcilers.declared.family import Family
from reconcilers.declared.raw import raw_shape
from reconcilers.rows.glance import can_expect
from reconcilers.rows.memory import Watching
from reconcilers.words.model import Micros
from reconcilers.words.tokens import TokenRange
from streaming.again.pieces import SweptPiece
from streaming.again.rounds import SweepRounds
from streaming.again.scan import tables_of
from streaming.again.sieve import Sieve

log = logging.getLogger("reconciler")

LISTING_NOT_KNOWN = "what only the listing has is not all known"


class Interrupted(Exception):
    """The sweep or replay is stopped from outside; a sweep can be resumed."""


@dataclass(slots=True)
class SweepResult:
    """What a sweep has done. ``memory`` is why lineage is not complete, None if it is.

    ``systematic`` has a line for each finding that stands for many rows. ``unread`` are tokens that
    could not be read; ``unreadable`` counts rows that could not be looked at, by table.
    """

    rows: int = 0
    suspects: int = 0
    unread: list[tuple[str, TokenRange, str]] = field(default_factory=list)
    memory: str | None = None
    systematic: tuple[str, ...] = ()
    unreadable: Counter[str] = field(default_factory=Counter)

    @property
    def is_all(self) -> bool:
        """Whether lineage is complete and every row was read and looked at."""
        return self.memory is None and not self._partly

    def is_all_of(self, tables: Collection[str]) -> bool:
        """Whether lineage is complete and every row of some tables was read and looked at."""
        return self.memory is None and self._partly.isdisjoint(tables)

    @property
    def _partly(self) -> set[str]:
        """The tables with rows that could not be read or looked at."""
        return {*(table for table, _, _ in self.unread), *+self.unreadable}


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
    """Sweeps one family."""

    family: Family
    sweeps: Sweeps
    mark: SweepMark
    sieve: Sieve
    rounds: SweepRounds

    def run(self, sweep: SweepRecord) -> SweepResult:
        """Run or resume a sweep to its end. Raises `Interrupted`, `Unreachable`, `Refused`."""
        found, done = SweepResult(), self.sweeps.ranges(sweep)
        self.sieve.begin(sweep, sum(each.suspects for each in done.values()))
        truth, *others = tables_of(self.family)
        if self._reads_ahead(done):
            self._read_ahead(sweep)
        self._read(sweep, {truth: _left(sweep, done, truth)}, found)
        if sweep.truth_swept_at is None:
            found.memory = self._truth_ended(sweep, found)
        self._read(sweep, {each: _left(sweep, done, each) for each in others}, found)
        for each in done.values():
            found.rows += each.rows
            found.suspects += each.suspects
        if not done and not found.unread:
            self.sieve.ended(sweep)
        found.systematic = tuple(self.sieve.lines())
        if found.memory is None:  # it may have begun again since
            found.memory = self.mark.refused(sweep)
        self.sweeps.end(sweep, self.rounds.clock(), _outcome(found))
        return found

    def _read(
        self,
        sweep: SweepRecord,
        left: Mapping[str, Collection[int]],
        found: SweepResult,
    ) -> None:
        """Read the ranges that are left of some tables together."""
        take, ended = partial(self._take, sweep, found), partial(self._ended, sweep, found)
        self.rounds.read(left, sweep.ranges, take, ended)

    def _ended(self, sweep: SweepRecord, found: SweepResult, table: str) -> None:
        """Decide what waits of a table that was read. Of the listing, all rows are known then."""
        read_at, listing = self.rounds.clock(), self.family.listing.table
        self.sweeps.swept(sweep, self.sieve.table_ended(table))
        if table == listing and found.is_all_of((self.family.truth.table, listing)):
            self.mark.set_listed(sweep, read_at)

    def _reads_ahead(self, done: Collection[RangeKey]) -> bool:
        """Whether to read ahead: only before any range is done, and after a sweep of the truth.

        A sweep that is killed meanwhile does not repeat it, so that it ends even if killed often.
        """
        watching = self.mark.lineage.watching()
        swept = watching is not None and watching.believed(self.mark.delay).swept_at is not None
        shape = raw_shape(self.family)
        can = shape is not None and can_expect(self.family, shape)
        return can and swept and not done

    def _read_ahead(self, sweep: SweepRecord) -> None:
        """Read the listing ahead, and record first that this has begun."""
        listing = self.family.listing.table
        self.sweeps.swept(sweep, {(listing + AHEAD, 0): SweptRange(0, 0)})
        self.rounds.read_ahead(listing, sweep.ranges, listing + AHEAD)

    def _take(self, sweep: SweepRecord, found: SweepResult, good: Sequence[SweptPiece]) -> None:
        self.sweeps.swept(sweep, self.sieve.take(good))
        for each in good:
            found.unread += [(each.piece.table, tokens, why) for tokens, why in each.unread]
            found.unreadable[each.piece.table] += len(each.unreadable)
            found.rows += each.rows
            found.suspects += each.differ

    # --- the end of the truth

    def _truth_ended(self, sweep: SweepRecord, found: SweepResult) -> str | None:
        """Mark memory as whole; returns why not, None if it is."""
        read_at = self.rounds.clock()
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


def _left(sweep: SweepRecord, done: Mapping[RangeKey, SweptRange], table: str) -> set[int]:
    """The ranges of a table that are not done."""
    read = (
        range(first, first + each.ranges) for (name, first), each in done.items() if name == table
    )
    return set(range(sweep.ranges)).difference(*read)


def _outcome(found: SweepResult) -> str:
    whole = "lineage is complete"
    if found.memory is not None:
        whole = f"lineage is not complete: {found.memory}"
    elif not found.is_all:
        whole += f", but {LISTING_NOT_KNOWN}"
    unread = f", {len(found.unread)} ranges unread" if found.unread else ""
    many = f", {len(found.systematic)} systematic" if found.systematic else ""
    return f"{found.rows} rows, {found.suspects} suspects{many}{unread}; {whole}"
