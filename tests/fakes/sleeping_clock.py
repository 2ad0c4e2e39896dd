"""A clock for limits on rates."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class SleepingClock:
    """In place of the module `time`: time passes only by sleeping, or by hand."""

    now: float = 1_000.0
    slept: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.now += seconds
