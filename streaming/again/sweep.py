"""A sweep of a family: every row of the truth, then of its projections, by ranges of tokens.

If lineage is complete, the listing is read first: rows right there are not read again by the
scan of the truth. This finds no suspects; a sweep that is killed continues without it.

::

    range ─▶ worker: scan ─▶ glance ─▶ look ─▶ suspects ─▶ sieve ─▶ handed over ─▶ the range is done
                                                             └─▶ systematic: left, one finding

A range is done when its suspects are handed over or left. After a crash the ranges in flight and
those with suspects in the sieve are scanned again. When the whole truth has been read, and its
suspects are settled, lineage is complete. Once the listing was read too, it has every message
whose rows the truth lacks. A family without lineage has one phase for all its tables, and marks
nothing (`streaming.again.mark`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from checkpoints.sweeps import AHEAD, RangeKey, SweepRecord, Sweeps, SweptRange
from reconcilers.declared.family import Family
from reconcilers.declared.raw import raw_shape
from reconcilers.declared.scan import phases_of
from reconcilers.rows.glance import can_expect
from streaming.again.mark import Marking
from streaming.again.pieces import SweptPiece
from streaming.again.rounds import SweepRounds
from streaming.again.sieve import Sieve
from streaming.again.sweep_result import SweepResult

log = logging.getLogger("reconciler")


class Interrupted(Exception):
    """The sweep or replay is stopped from outside; a sweep can be resumed."""


@dataclass(slots=True)
class Sweeper:
    """Sweeps one family."""

    family: Family
    sweeps: Sweeps
    mark: Marking
    sieve: Sieve
    rounds: SweepRounds

    def run(self, sweep: SweepRecord) -> SweepResult:
        """Run or resume a sweep to its end. Raises `Interrupted`, `Unreachable`, `Refused`."""
        found, done = SweepResult(), self.sweeps.ranges(sweep)
        self.sieve.begin(sweep, sum(each.suspects for each in done.values()))
        truth, *rest = phases_of(self.family)
        if self._reads_ahead(done):
            self._read_ahead(sweep)
        self._read(sweep, {each: _left(sweep, done, each) for each in truth}, found)
        if sweep.truth_swept_at is None:
            found.memory = self._truth_ended(sweep, found)
        for tables in rest:
            self._read(sweep, {each: _left(sweep, done, each) for each in tables}, found)
        for each in done.values():
            found.rows += each.rows
            found.suspects += each.suspects
        if not done and not found.unread:
            self.sieve.ended(sweep)
        found.systematic = tuple(self.sieve.lines())
        if found.memory is None:  # it may have begun again since
            found.memory = self.mark.refused(sweep)
        found.whole = self.mark.told(found)
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
        shape = raw_shape(self.family)
        can = shape is not None and can_expect(self.family, shape)
        return can and not done and self.mark.is_swept()

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
        """Mark the truth as read; returns why it is not known, None if it is."""
        read_at = self.rounds.clock()
        why = f"{len(found.unread)} ranges of tokens cannot be read" if found.unread else None
        why = why or self.mark.set(sweep, read_at, self.sieve.sink.settled)
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
    unread = f", {len(found.unread)} ranges unread" if found.unread else ""
    many = f", {len(found.systematic)} systematic" if found.systematic else ""
    return f"{found.rows} rows, {found.suspects} suspects{many}{unread}; {found.whole}"
