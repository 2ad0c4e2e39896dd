"""When the stream sweeps a family automatically: if changes are unknown, and every so many days.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from checkpoints.clock import to_micros
from checkpoints.sweeps import SweepRecord
from reconcilers.rows.memory import Watching
from reconcilers.words.model import Micros

DAY: Micros = to_micros(86_400)
"""How long (µs) after a sweep that did not make memory whole the next begins."""
NOT_WHOLE = "changes from before lineage began, or that were lost, are not known"
TIME_HAS_COME = "sweep.every_days"


def without_lineage(
    watching: Watching | None, lost_at: Micros, sweeps: Sequence[SweepRecord], delay: Micros
) -> Watching | None:
    """What is known of a family without lineage, as if its ``sweeps`` had been marked there.

    ``watching`` is the lineage of messages: it begins again after each loss of all streams.
    ``lost_at`` is when the family's own stream last lost events (µs; 0: never).
    """
    if watching is None:
        return None
    noted_at = max(watching.noted_at, lost_at)
    known = replace(watching, noted_at=noted_at, swept_at=None, listed_at=None)
    counts_from, ends = known.sweeps_count_from(delay), list[Micros]()
    for each in sweeps:
        if each.began_at >= counts_from and each.truth_swept_at and each.ended_at:
            ends.append(each.ended_at)
    ended = max(ends, default=None)
    return replace(known, swept_at=ended, listed_at=ended)


@dataclass(frozen=True, slots=True)
class SweepSchedule:
    """Sweeps ``when_needed``, if lineage is not complete, and ``every`` so many µs (None: never).

    Memory is not whole after the first start on an older keyspace, and after every loss of events.
    ``delay`` is D (µs).
    """

    when_needed: bool
    every: Micros | None
    delay: Micros

    def due(
        self, watching: Watching | None, sweeps: Sequence[SweepRecord], now: Micros
    ) -> str | None:
        """Why a sweep is due at ``now`` (µs), None if none is. ``sweeps`` are all of the family."""
        why = self.needed(watching, sweeps, now)
        if watching is None or why is None or why == TIME_HAS_COME:
            return why
        if not self.when_needed:
            return None
        counts_from = watching.sweeps_count_from(self.delay)
        tried = [each for each in sweeps if each.began_at >= counts_from]
        failed = [each.ended_at for each in tried if each.ended_at is not None]
        return NOT_WHOLE if max(failed, default=0) + DAY <= now else None

    def needed(
        self, watching: Watching | None, sweeps: Sequence[SweepRecord], now: Micros
    ) -> str | None:
        """Why somebody should sweep, None if nobody need, whether or not the stream does it."""
        if watching is None or now < watching.sweeps_count_from(self.delay):
            return None  # it would not make lineage complete
        ended = [each.ended_at for each in sweeps if each.ended_at is not None]
        if self.every is not None and max(ended, default=0) + self.every <= now:
            return TIME_HAS_COME
        known = watching.believed(self.delay)
        return NOT_WHOLE if None in (known.swept_at, known.listed_at) else None

    def left(
        self, watching: Watching, sweeps: Sequence[SweepRecord], like: SweepRecord
    ) -> SweepRecord | None:
        """The newest unfinished sweep like this that can make memory whole; None to begin one."""
        counts_from = watching.sweeps_count_from(self.delay)
        for each in sorted(sweeps, key=lambda sweep: sweep.began_at, reverse=True):
            same = each.systems == like.systems
            if each.ended_at is None and each.began_at >= counts_from and same:
                return each
        return None
