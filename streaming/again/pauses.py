"""A sweep's pauses: outside the hours in which it may read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from reconcilers.sweep.hours import Hours

LOOKS_AGAIN = 60.0
"""Seconds after which a pause looks at the clock again, which a person may set."""


def local_time() -> datetime:
    """Now, in the time zone of this process."""
    return datetime.now().astimezone()


@dataclass(frozen=True, slots=True)
class WithinHours:
    """Waits as ``wait`` does, and then until ``hours`` begin. ``say`` is called once a pause."""

    hours: Hours
    wait: Callable[[float], None]
    say: Callable[[str], None]
    now: Callable[[], datetime] = local_time

    def __call__(self, seconds: float) -> None:
        """Wait for some seconds, and for the hours. Raises as ``wait`` does."""
        self.wait(seconds)
        why = self.hours.closed(self.now())
        if why is not None:
            self.say(why)
        while opens_in := self.hours.opens_in(self.now()).total_seconds():
            self.wait(min(opens_in, LOOKS_AGAIN))
