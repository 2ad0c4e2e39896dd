"""How a sweep compares the rows of a family that a glance can read.

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, groupby

from checkpoints.clock import now_micros, to_micros
from reconcilers.declared.family import Family
from reconcilers.declared.raw import RawKey, RawRow, RawShape, decoder
from reconcilers.rows import glance
from reconcilers.rows.glance import Asked
from reconcilers.rows.memory import Entry, believed_since
from reconcilers.words.model import KeyValue, Micros, Slot, Suspect, Wake
from streaming.again.fingerprints import Fingerprints, RowFingerprints, are_among
from streaming.pipeline.worker import BatchLook, Job, look_at, mark_counted
from streaming.steps.glance import Glance

ROWS_AT_ONCE = 10_000
"""Rows of the truth compared at once; all rows of a message stay together."""


class GlancedRows:
    """`streaming.again.scan.ComparedRows` of one family, over one process's connections.

    ``expected`` has fingerprints of what the truth must contain, ``right`` those of listing rows
    that are right.
    """

    def __init__(
        self, job: Job, mine: Glance, expected: RowFingerprints, right: RowFingerprints
    ) -> None:
        self._job, self._glance = job, mine
        self._expected, self._right = expected, right
        self._key = [decoder(column) for column in job.family.key]
        self._source = decoder(job.family.truth.source)

    def compared(
        self, table: str, pages: Iterable[Sequence[RawRow]]
    ) -> Iterator[tuple[int, Sequence[Suspect]]]:
        """Some rows at a time: how many, and the suspects among them."""
        for rows, since in self._together(table, _dated(pages)):
            yield len(rows), self._compared(table, self._unknown(table, rows), since)

    def read_ahead(self, rows: Sequence[RawRow]) -> None:
        """Keep fingerprints of what the truth must hold for these rows of the listing."""
        self._expected.note(self._glance.of_listing(rows, self._believed_since()))

    def _partition(self, table: str) -> int:
        """The position of the partition key in a row of a table."""
        return self._glance.shape.source[0] if table == self._job.family.truth.table else 0

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
            look_at(job, frozenset(), wakes, looked, now_micros())
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
