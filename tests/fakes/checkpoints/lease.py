"""The fake of the lease."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from checkpoints.lease import Holder


class MemoryLease:
    """`checkpoints.lease.LeaseStore` of one process; ``clock`` gives seconds that only go up."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[str, tuple[Holder, float]] = {}

    def take(self, name: str, holder: Holder, lasts: timedelta) -> Holder:
        other = self.held_by(name)
        if other is not None and other.id != holder.id:
            return other
        self._held[name] = (holder, self._clock() + lasts.total_seconds())
        return holder

    def leave(self, name: str, holder: Holder) -> None:
        held = self.held_by(name)
        if held is not None and held.id == holder.id:
            del self._held[name]

    def held_by(self, name: str) -> Holder | None:
        holder, until = self._held.get(name, (None, 0.0))
        return holder if self._clock() < until else None
