"""The clock of the process that writes canaries, compared with the nodes' clocks."""

from __future__ import annotations

import time
from dataclasses import dataclass

from checkpoints.clock import now_micros
from reconcilers.words.model import Micros
from reconcilers.words.waiting import why_of
from streaming.monitoring.clocks import ClockWatch


@dataclass(frozen=True, slots=True)
class MeasuredClock:
    """This process's clock; ``watch`` compares it with the nodes' clocks."""

    watch: ClockWatch

    def now(self) -> Micros:
        """Now (µs since the epoch)."""
        return now_micros()

    def steady(self) -> float:
        """The monotonic clock, in seconds."""
        return time.monotonic()

    def trouble(self) -> str | None:
        """Why the clock is not reliable; None while no node's clock differs by D/2."""
        self.watch.measure_if_due()
        return why_of(self.watch.trouble())
