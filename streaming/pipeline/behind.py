"""Whether the stream is behind, slice by slice; repairs that rest on lineage are held then."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from checkpoints.clock import to_micros
from reconcilers.capture.frontier import Echoes
from reconcilers.limits.behind import Heard, longest_age, why_behind
from reconcilers.words.model import Micros
from reconcilers.words.waiting import Wait, Waiting
from streaming.canary.watch import FrontierWatch
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.slices import Slice
from streaming.settings import Settings

log = logging.getLogger("reconciler")


def longest_age_of(settings: Settings) -> Micros:
    """How old (µs) the frontier may be before the stream is behind."""
    stream, canary = settings.stream, settings.canary
    return longest_age(
        to_micros(stream.delay), to_micros(stream.window), to_micros(canary.usual_delay)
    )


def judged_within(settings: Settings) -> Micros:
    """How long (µs) it usually takes until a suspect is judged, all its looks included.

    The last look comes within a delay and a window of when its event was expected.
    """
    stream = settings.stream
    heard = longest_age_of(settings) + to_micros(stream.delay / 2)
    return heard + to_micros(2 * (stream.delay + stream.window))


@dataclass(slots=True)
class BehindWatch:
    """Judges for each slice whether the stream is behind.

    ``longest`` is the age (µs) that the frontier may have; ``skew`` (µs) bounds the nodes' clock
    error.
    """

    frontier: FrontierWatch
    longest: Micros
    skew: Micros
    clock: Callable[[], Micros]
    metrics: Metrics
    _is: bool = False
    _was: bool = False

    def heard(self, piece: Slice, echoes: Sequence[Echoes] = ()) -> Heard:
        """The canaries received up to now.

        ``echoes`` are those of this slice while it is not settled: what they prove was looked at.
        """
        until = self.frontier.until_with(echoes, piece.end)
        return Heard(until, self.frontier.nodes(), piece.whole)

    def why(self, heard: Heard) -> Waiting | None:
        """Why the stream is behind, None if it is not; shown in the log and by a metric."""
        why = why_behind(heard, self.clock(), self.longest, self.skew)
        if why is not None and not self._is:
            log.info("removals that rest on lineage wait: %s", why)
        if why is None and self._is:
            log.info("the stream is not behind any more: nothing waits for it")
        self._is = why is not None
        self._was |= self._is
        self.metrics.show_wait(Wait.BEHIND, why)
        return why

    def is_over(self) -> bool:
        """Whether the stream was behind since the last call, and is not any more."""
        over, self._was = self._was and not self._is, self._is
        return over
