"""When the stream sweeps by itself: where lineage is not complete, and every so many days. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkpoints.clock import to_micros
from checkpoints.sweeps import SweepRecord
from reconcilers.rows.memory import Watching
from reconcilers.words.model import Micros

DAY: Micros = to_micros(86_400)
"""So long after one that did not make memory whole the next is begun."""
NOT_WHOLE = "changes from before lineage began, or that were lost, are not known"
TIME_HAS_COME = "sweep.every_days"


@dataclass(frozen=True, slots=True)
class SweepSchedule:
    """``when_needed``: if lineage is incomplete. ``every`` is µs, None for never; D is ``delay``.

    Memory is not whole after the first start on a keyspace with a past, and after every loss.
    """

    when_needed: bool
    every: Micros | None
    delay: Micros

    def due(
        self, watching: Watching | None, sweeps: Sequence[SweepRecord], now: Micros
    ) -> str | None:
        """Why one is to be begun, or gone on with, now; None where none is. ``sweeps``: all."""
        if watching is None:
            return None  # it would not make memory whole
        counts_from = watching.sweeps_count_from(self.delay)
        if now < counts_from:
            return None
        ended = [each.ended_at for each in sweeps if each.ended_at is not None]
        if self.every is not None and max(ended, default=0) + self.every <= now:
            return TIME_HAS_COME
        known = watching.believed(self.delay)
        if not self.when_needed or None not in (known.swept_at, known.listed_at):
            return None
        tried = [each for each in sweeps if each.began_at >= counts_from]
        failed = [each.ended_at for each in tried if each.ended_at is not None]
        return NOT_WHOLE if max(failed, default=0) + DAY <= now else None

    def left(
        self, watching: Watching, sweeps: Sequence[SweepRecord], like: SweepRecord
    ) -> SweepRecord | None:
        """The newest that has not ended and can still make memory whole; None to begin one."""
        counts_from = watching.sweeps_count_from(self.delay)
        for each in sorted(sweeps, key=lambda sweep: sweep.began_at, reverse=True):
            same = each.systems == like.systems and each.ranges == like.ranges
            if each.ended_at is None and each.began_at >= counts_from and same:
                return each
        return None
