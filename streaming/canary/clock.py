"""The clock of the process that writes canaries, measured against the nodes' clocks."""

from __future__ import annotations

import time
from dataclasses import dataclass

from checkpoints.clock import now_micros
from reconcilers.words.model import Micros
from reconcilers.words.waiting import why_of
from streaming.monitoring.clocks import ClockWatch


@dataclass(frozen=True, slots=True)
class MeasuredClock:
    """This process's own. ``watch`` measures it."""

    watch: ClockWatch

    def now(self) -> Micros:
        """The time, µs."""
        return now_micros()

    def steady(self) -> float:
        """Seconds that only go up."""
        return time.monotonic()

    def trouble(self) -> str | None:
        """Why it is not to be trusted; None while no node's clock differs by D/2."""
        self.watch.measure_if_due()
        return why_of(self.watch.trouble())
