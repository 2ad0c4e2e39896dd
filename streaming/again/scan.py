"""What a sweep does on Spark's workers: it reads some tokens of one table, and compares the rows.

=============  ====================================================================================
table          what is compared
=============  ====================================================================================
the listing,   if lineage is complete: each row with lineage, indexes; a fingerprint of the truth
ahead          row that it needs is kept (`fingerprints.py`)
the truth      each row with these fingerprints; a row without one with the listing and the indexes
               at its slot, and lineage then records it
the listing    each row with the truth of the source that it names; unchanged rows that a glance
               or a look at the truth found right are skipped
an index       each row, by its key, with all of them
=============  ====================================================================================

A row that is plainly right costs a glance; others are looked at as in the stream. Each table has an
order of its own, so other tables are read row by row, unless a fingerprint makes that unnecessary.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, groupby

from checkpoints.clock import now_micros, to_micros
from reconcilers.declared.family import Family
from reconcilers.declared.raw import RawKey, RawRow, RawShape, decoder
from reconcilers.rows import glance
from reconcilers.rows.glance import Asked
from reconcilers.rows.memory import Entry, believed_since
from reconcilers.words.errors import ReadFailed, Refused, Retryable
from reconcilers.words.model import KeyValue, Micros, Slot, Suspect, Wake
from reconcilers.words.tokens import TokenRange
from streaming.again.fingerprints import Fingerprints, KeptFingerprints, RowFingerprints, are_among
from streaming.again.past import PastRows
from streaming.again.pieces import Piece, PieceEnd, SweptPiece
from streaming.pipeline.worker import BatchLook, Job, look_at, mark_counted
from streaming.steps.ports import RawScans

log = logging.getLogger("reconciler")

ROWS_AT_ONCE = 10_000
"""Rows of the truth compared at once; all rows of a message stay together."""


@dataclass(frozen=True, slots=True)
class Scanning:
    """What a worker needs to sweep: the job, and what makes ``scans`` and ``past`` in its process.

    ``expected`` has fingerprints of what the truth must contain, ``compared`` those of listing rows
    that are right.
    """

    job: Job
    scans: Callable[[Job], RawScans]
    past: Callable[[Job], PastRows]
    expected: KeptFingerprints
    compared: KeptFingerprints


def sweep_task(scanning: Scanning) -> Callable[[Iterable[Piece]], Iterator[SweptPiece]]:
    """A function for ``mapPartitions``: from pieces to what was found in them."""
    return partial(_swept, scanning)


def _swept(scanning: Scanning, pieces: Iterable[Piece]) -> Iterator[SweptPiece]:
    scanner = Scanner(scanning)
    for piece in pieces:
        found = SweptPiece(piece)
        try:
            if piece.ahead:
                scanner.read_ahead(found)
            else:
                scanner.sweep(piece.tokens, found)
        except (Retryable, Refused) as failed:  # no other table is held up
            found = SweptPiece(piece, failed=failed)
        yield found


class Scanner:
    """Compares what it scans, over one process's connections."""

    def __init__(self, scanning: Scanning) -> None:
        job = scanning.job
        self._scans, self._past = scanning.scans(job), scanning.past(job)  # refuses in plain words
        mine = job.connections().glance
        assert mine is not None, "a family that cannot be glanced at is not swept"
        self._job, self._glance = job, mine
        self._expected = RowFingerprints(scanning.expected, self._scans.token)
        self._right = RowFingerprints(scanning.compared, self._scans.token)
        self._key = [decoder(column) for column in job.family.key]
        self._source = decoder(job.family.truth.source)

    def sweep(self, tokens: TokenRange, found: SweptPiece) -> None:
        """Scan tokens; if a part cannot be read, halve the range down to the failing token.

        Raises `Retryable`. If the last token alone, which most likely has no row, cannot be read
        either, the table or the server fails: that is raised, too.
        """
        table, end = found.piece.table, self._end(found)
        try:
            pages = end.pages(self._scans.pages(table, tokens, found.piece.most))
            for rows, since in self._together(table, _dated(pages)):
                found.rows += len(rows)
                differing = self._compared(table, self._unknown(table, rows), since)
                found.take(self._past.sift(differing, found.piece.at))
        except ReadFailed as failed:
            if tokens == found.piece.tokens:
                self._read_nothing(table, tokens)
            halves = tokens.halves()
            if len(halves) == 1:
                found.unread.append((tokens, str(failed)))
                return
            for half in halves:
                if half.after < found.piece.tokens.until:
                    self.sweep(half, found)

    def read_ahead(self, found: SweptPiece) -> None:
        """Make fingerprints from a piece of the listing.

        If a page cannot be read, the piece ends with the range of the last row before it.
        """
        piece, end, last = found.piece, self._end(found), found.piece.numbers.start
        try:
            for rows in end.pages(self._scans.pages(piece.table, piece.tokens, piece.most)):
                found.rows += len(rows)
                last = end.range_of(rows[-1]) if rows else last
                expected = self._glance.of_listing(rows, self._believed_since())
                self._expected.note(expected)
        except ReadFailed as failed:
            found.end_before(last + 1)
            log.info("the sweep of the truth takes longer: %s", failed)

    def _end(self, found: SweptPiece) -> PieceEnd:
        return PieceEnd(found, self._scans.token, self._partition(found.piece.table))

    def _partition(self, table: str) -> int:
        """The position of the partition key in a row of a table."""
        return self._glance.shape.source[0] if table == self._job.family.truth.table else 0

    def _read_nothing(self, table: str, tokens: TokenRange) -> None:
        for _page in self._scans.pages(table, TokenRange(tokens.until - 1, tokens.until), 1):
            pass

    def _together(
        self, table: str, pages: Iterable[tuple[Sequence[RawRow], Micros]]
    ) -> Iterator[tuple[list[RawRow], Micros]]:
        """Pages of rows with their times; in those of the truth all rows of a source are together.

        The time is the earliest of the pages (µs).
        """
        if table != self._job.family.truth.table:
            yield from ((list(rows), since) for rows, since in pages)
            return
        at, rows, oldest = self._glance.shape.source[0], list[RawRow](), 0
        for page, since in pages:
            for _source, some in groupby(page, key=lambda row: row[at]):
                same = list(some)
                if len(rows) >= ROWS_AT_ONCE and rows[-1][at] != same[0][at]:
                    yield rows, oldest
                    rows = []
                oldest = oldest if rows else since
                rows += same
        yield rows, oldest

    def _compared(self, table: str, rows: Sequence[RawRow], since: Micros) -> Sequence[Suspect]:
        """The suspects among rows that were read ``since`` a time (µs)."""
        if not rows:
            return ()
        job = self._job
        source = _place_of_source(job.family, self._glance.shape, table)
        width = len(self._key)
        asked = glance.scanned(rows, width, source)
        of_truth = table == job.family.truth.table
        right = (
            self._right_of_truth(asked, rows, since)
            if of_truth
            else self._glance.right(asked, self._believed_since())
        )
        left = [row for row in rows if None not in row[:width] and row[:width] not in right]
        looked = BatchLook()
        if left:
            wakes = [Wake(self._decoded(row), self._named(row, source), changes=0) for row in left]
            look_at(job, frozenset(), wakes, looked)
            if of_truth:
                differing = {each.slot.key for each in looked.suspects}
                pairs = zip(left, wakes, strict=True)
                self._note_compared(row for row, wake in pairs if wake.key not in differing)
        return looked.suspects

    def _right_of_truth(
        self, asked: Asked, rows: Sequence[RawRow], since: Micros
    ) -> Mapping[RawKey, RawRow]:
        """The slots that are plainly right, by these truth rows; new ones are recorded."""
        right, new = self._glance.of_scan(asked, self._believed_since(), rows)
        place = self._glance.shape.source[0]
        self._job.connections().lineage.remember(
            Entry(source, Slot(*self._decoded(key)), in_truth=True, recorded_at=since)
            for key in new
            if (source := self._named(right[key], place)) is not None
        )
        self._note_compared(right.values())
        return right

    def _believed_since(self) -> Micros | None:
        delay = to_micros(self._job.settings.stream.delay)
        return believed_since(self._job.connections().lineage.watching(), delay)

    def _unknown(self, table: str, rows: list[RawRow]) -> list[RawRow]:
        """The rows that must still be compared; in the listing all their chunks are marked."""
        family, partition = self._job.family, self._partition(table)
        if rows and table == family.truth.table:
            return self._not_as_expected(self._expected.around(rows, partition), rows)
        if rows and table == family.listing.table:
            return self._not_compared(self._right.around(rows, partition), rows)
        return rows

    def _not_as_expected(self, known: Fingerprints, rows: list[RawRow]) -> list[RawRow]:
        """The rows of the truth that must still be compared."""
        if not len(known):
            return rows
        told = self._glance.of_truth(rows)
        among = are_among([said for _, said in told], known)
        right = {truth for truth, _ in compress(told, among)}
        self._note_compared(right)
        return [row for row in rows if row not in right]

    def _note_compared(self, truths: Iterable[RawRow]) -> None:
        self._right.note(map(self._glance.shape.listed, truths))

    def _not_compared(self, known: Fingerprints, rows: list[RawRow]) -> list[RawRow]:
        """The rows of the listing that must still be compared; chunks of all are marked."""
        width = len(self._key)
        mark_counted(self._job, (self._decoded(row) for row in rows if None not in row[:width]))
        among = are_among(rows, known)
        return [row for row, is_known in zip(rows, among, strict=True) if not is_known]

    def _decoded(self, row: RawRow) -> tuple[KeyValue, ...]:
        pairs = zip(self._key, row, strict=False)
        return tuple([decode(cell) for decode, cell in pairs if cell is not None])

    def _named(self, row: RawRow, at: int | None) -> KeyValue | None:
        cell = None if at is None else row[at]
        return None if cell is None else self._source(cell)


def _dated(pages: Iterable[Sequence[RawRow]]) -> Iterator[tuple[Sequence[RawRow], Micros]]:
    """Pages, each with a time (µs) before it was requested, which is up to one page ahead."""
    requested = reached = now_micros()
    for page in pages:
        yield page, requested
        requested, reached = reached, now_micros()


def _place_of_source(family: Family, shape: RawShape, table: str) -> int | None:
    """The position at which a row of a table names its source; None for an index."""
    tables = family.truth.table, family.listing.table
    return shape.source[tables.index(table)] if table in tables else None


def tables_of(family: Family) -> tuple[str, ...]:
    """The tables to scan, in order: the truth first, which fills lineage."""
    indexes = (each.table for each in family.projections[1:] if each.collects is None)
    return (family.truth.table, family.listing.table, *indexes)
