"""A host whose wall clock can be set, and a node whose clock is right."""

from __future__ import annotations

from dataclasses import dataclass, field

from checkpoints.clock import to_micros, to_seconds
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Micros
from streaming.monitoring.clocks import ClockWatch, OwnTime
from tests.builders.rows import DELAY, NOW


@dataclass
class Host:
    """Its time: ``steady`` goes on by itself, the wall clock is ``ahead`` of what is right."""

    steady: float = 1_000.0
    ahead: float = 0.0

    def own(self) -> OwnTime:
        return OwnTime(to_seconds(NOW) + self.steady - 1_000 + self.ahead, self.steady)

    def now(self) -> Micros:
        """What its processes take for now, µs."""
        return to_micros(self.own().wall)


@dataclass
class OneNode:
    """A node that knows the right time, and may be silent."""

    host: Host = field(default_factory=Host)
    silent: bool = False
    asked: int = 0

    def members(self) -> str:
        return "a"

    def clocks(self) -> dict[str, float]:
        self.asked += 1
        if self.silent:
            raise Unreachable("no host answered")
        return {"a": -self.host.ahead}

    def watch(self) -> ClockWatch:
        """A process of the host, as it begins."""
        return ClockWatch(self, to_seconds(DELAY), own=self.host.own)
