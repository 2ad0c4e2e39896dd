"""What a sweep marks when it has read the truth, and when the listing: in lineage, or nothing."""
# ruff: noqa: ARG002 (the arguments of `NoMark` are the protocol's)

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from checkpoints.lineage import Lineage
from checkpoints.sweeps import SweepRecord
from reconcilers.rows.memory import Watching
from reconcilers.words.model import Micros
from streaming.again.sweep_result import SweepResult

log = logging.getLogger("reconciler")

LISTING_NOT_KNOWN = "what only the listing has is not all known"
NOT_SETTLED = "what was found is not settled: no stream runs"
COMPARED, NOT_COMPARED = "every row was compared", "some rows could not be compared"


class Marking(Protocol):
    """What a sweep records when it has read the truth, and when the listing. Times are µs."""

    def early(self, now: Micros) -> Micros:
        """How long a sweep must wait to make everything known; 0 if it need not, or cannot."""

    def refused(self, sweep: SweepRecord) -> str | None:
        """Why this sweep does not make everything known, None when it may."""

    def is_swept(self) -> bool:
        """Whether the whole truth is known before the sweep, so that the listing is read ahead."""

    def set(self, sweep: SweepRecord, at: Micros, settled: Callable[[], bool]) -> str | None:
        """The truth was read by a time; returns why it is not known yet, else None."""

    def set_listed(self, sweep: SweepRecord, at: Micros) -> None:
        """The listing was read by a time."""

    def told(self, found: SweepResult) -> str:
        """In words whether everything is known now."""


@dataclass(frozen=True, slots=True)
class SweepMark:
    """`Marking` in lineage. ``delay`` is D (µs)."""

    lineage: Lineage
    delay: Micros

    def early(self, now: Micros) -> Micros:
        """How long (µs) until a sweep counts: after a loss.

        0 if that is longer than D: a clock is wrong, and the result of the sweep says so.
        """
        watching = self.lineage.watching()
        early = 0 if watching is None else watching.sweeps_count_from(self.delay) - now
        return early if 0 < early <= self.delay else 0

    def refused(self, sweep: SweepRecord) -> str | None:
        """Why this sweep does not make lineage complete, None when it may."""
        return self._why(self.lineage.watching(), sweep)

    def _why(self, watching: Watching | None, sweep: SweepRecord) -> str | None:
        if watching is None:
            return "it is not known since when every change was received"
        if watching.sweeps_count_from(self.delay) > sweep.began_at:
            return "lineage was reset, or a loss was found, since this sweep began: sweep again"
        return None

    def is_swept(self) -> bool:
        """Whether lineage is complete by an earlier sweep."""
        watching = self.lineage.watching()
        return watching is not None and watching.believed(self.delay).swept_at is not None

    def set(self, sweep: SweepRecord, at: Micros, settled: Callable[[], bool]) -> str | None:
        """Mark that the whole truth was read by a time (µs), once what it found is ``settled``.

        Returns why not if it is not, or if memory has ended or begun again meanwhile; else None.
        """
        why = self.refused(sweep)
        if why is not None or not settled():
            return why or NOT_SETTLED
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

    def told(self, found: SweepResult) -> str:
        """Whether lineage is complete."""
        if found.memory is not None:
            return f"lineage is not complete: {found.memory}"
        return (
            "lineage is complete"
            if found.is_all
            else f"lineage is complete, but {LISTING_NOT_KNOWN}"
        )


@dataclass(frozen=True, slots=True)
class NoMark:
    """`Marking` of a family without lineage: no later decision rests on the sweep."""

    def early(self, now: Micros) -> Micros:
        """0: it need not wait."""
        return 0

    def refused(self, sweep: SweepRecord) -> str | None:
        """None: any sweep counts."""
        return None

    def is_swept(self) -> bool:
        """False: reading ahead would save nothing."""
        return False

    def set(self, sweep: SweepRecord, at: Micros, settled: Callable[[], bool]) -> str | None:
        """Mark nothing, and wait for nothing."""
        return None

    def set_listed(self, sweep: SweepRecord, at: Micros) -> None:
        """Mark nothing."""

    def told(self, found: SweepResult) -> str:
        """Whether every row was compared."""
        return COMPARED if found.is_all else NOT_COMPARED
