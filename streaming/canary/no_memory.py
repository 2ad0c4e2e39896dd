"""Stands for `MemoryWatch` in the stream of a family without lineage: no memory of it can be wrong.

The stream of messages receives the same canaries and records what they show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from checkpoints.losses import Cause, Loss, Losses
from reconcilers.capture.frontier import Proven
from reconcilers.words.model import Micros


@dataclass(frozen=True, slots=True)
class NoMemoryWatch:
    """`streaming.canary.memory_watch.Memories`. ``clock`` is µs."""

    losses: Losses
    clock: Callable[[], Micros]

    def check(self) -> None:
        """Do nothing."""

    def heard(self, proven: Proven) -> None:
        """Do nothing."""

    def lost(self, until: Micros, why: str) -> None:
        """Do nothing."""

    def lost_until_now(self, why: str) -> None:
        """Record that Kafka has lost events of this stream from before now. Raises `Retryable`."""
        self.losses.record(Loss(self.clock(), why, Cause.RETENTION))

    def doubted(self, why: str, until: Micros | None) -> None:
        """Do nothing."""
