"""How a sweep compares a family that no glance can read: by its keys, one look for each row read.

A row of the truth's scan names a source: its truth is read, and every slot that it leads to. A row
of a projection's scan names a slot, and by it the source that decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from checkpoints.clock import now_micros
from reconcilers.declared.raw import RawRow
from reconcilers.declared.scan import wakes_of
from reconcilers.words.model import Suspect
from streaming.pipeline.worker import BatchLook, Job, look_at


class KeyedRows:
    """`streaming.again.scan.ComparedRows` of one family, over one process's connections."""

    def __init__(self, job: Job) -> None:
        self._job, self._wakes = job, wakes_of(job.family)

    def compared(
        self, table: str, pages: Iterable[Sequence[RawRow]]
    ) -> Iterator[tuple[int, Sequence[Suspect]]]:
        """For each page the number of keys, and the suspects among all that they lead to."""
        wake_of = self._wakes[table]
        for rows in pages:
            wakes = [wake for wake in map(wake_of, rows) if wake is not None]
            looked = BatchLook()
            if wakes:
                look_at(self._job, frozenset(), wakes, looked, now_micros())
            yield len(wakes), looked.suspects

    def read_ahead(self, rows: Sequence[RawRow]) -> None:
        """Do nothing: no scan of another table saves a look here."""
