"""What a sweep does on Spark's workers: it reads some tokens of one table, and compares the rows.

How rows are compared depends on the family: `glanced_rows.py` if a glance can read it, else
`keyed_rows.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from reconcilers.declared.raw import RawRow
from reconcilers.declared.scan import scans_of
from reconcilers.words.errors import ReadFailed, Refused, Retryable
from reconcilers.words.model import Suspect
from reconcilers.words.tokens import TokenRange
from streaming.again.fingerprints import RowFingerprints, SharedFingerprints
from streaming.again.glanced_rows import GlancedRows
from streaming.again.keyed_rows import KeyedRows
from streaming.again.past import PastRows
from streaming.again.pieces import Piece, PieceEnd, SweptPiece
from streaming.pipeline.worker import Job
from streaming.pipeline.worker_process import log_as_driver
from streaming.steps.ports import RawScans

log = logging.getLogger("reconciler")


@dataclass(frozen=True, slots=True)
class Scanning:
    """What a worker needs to sweep: the job, and what makes ``scans`` and ``past`` in its process.

    ``expected`` has fingerprints of what the truth must contain, ``compared`` those of listing rows
    that are right.
    """

    job: Job
    scans: Callable[[Job], RawScans]
    past: Callable[[Job], PastRows]
    expected: SharedFingerprints
    compared: SharedFingerprints

    def of_tasks(self, tasks: int) -> Scanning:
        """The same for workers that run so many tasks at a time."""
        return replace(self, job=self.job.of_tasks(tasks))


def sweep_task(scanning: Scanning) -> Callable[[Iterable[Piece]], Iterator[SweptPiece]]:
    """A function for ``mapPartitions``: from pieces to what was found in them."""
    return partial(_swept, scanning)


def _swept(scanning: Scanning, pieces: Iterable[Piece]) -> Iterator[SweptPiece]:
    log_as_driver()
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


class ComparedRows(Protocol):
    """Compares scanned rows of one family."""

    def compared(
        self, table: str, pages: Iterable[Sequence[RawRow]]
    ) -> Iterator[tuple[int, Sequence[Suspect]]]:
        """All rows of these pages of a table, some at a time: how many, and the suspects."""

    def read_ahead(self, rows: Sequence[RawRow]) -> None:
        """Take in rows of the listing before the truth is scanned."""


class Scanner:
    """Compares what it scans, over one process's connections."""

    def __init__(self, scanning: Scanning) -> None:
        job = scanning.job
        self._scans, self._past = scanning.scans(job), scanning.past(job)
        self._rows = _rows_of(scanning, self._scans)
        self._partition = {each.table: each.partition_of for each in scans_of(job.family)}

    def sweep(self, tokens: TokenRange, found: SweptPiece) -> None:
        """Scan tokens; if a part cannot be read, halve the range down to the failing token.

        Raises `Retryable`. If the last token alone, which most likely has no row, cannot be read
        either, the table or the server fails: that is raised, too.
        """
        table, end = found.piece.table, self._end(found)
        try:
            pages = end.pages(self._scans.pages(table, tokens, found.piece.most))
            for rows, differing in self._rows.compared(table, pages):
                found.rows += rows
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
                self._rows.read_ahead(rows)
        except ReadFailed as failed:
            found.end_before(last + 1)
            log.info("the sweep of the truth takes longer: %s", failed)

    def _end(self, found: SweptPiece) -> PieceEnd:
        return PieceEnd(found, self._scans.token, self._partition[found.piece.table])

    def _read_nothing(self, table: str, tokens: TokenRange) -> None:
        for _page in self._scans.pages(table, TokenRange(tokens.until - 1, tokens.until), 1):
            pass


def _rows_of(scanning: Scanning, scans: RawScans) -> ComparedRows:
    """How the rows of the job's family are compared."""
    job = scanning.job
    mine = job.connections().glance
    if mine is None:
        return KeyedRows(job)
    expected = RowFingerprints(scanning.expected, scans.token)
    return GlancedRows(job, mine, expected, RowFingerprints(scanning.compared, scans.token))
