"""Counts the losses that this process records."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoints.losses import Loss, Losses
from reconcilers.words.model import Micros
from streaming.monitoring.metrics import Metrics


@dataclass(frozen=True, slots=True)
class CountedLosses:
    """`checkpoints.losses.Losses`; each loss that is recorded raises its counter."""

    losses: Losses
    metrics: Metrics

    def record(self, loss: Loss) -> None:
        """Store a loss, then count it by its cause."""
        self.losses.record(loss)
        self.metrics.losses.labels(loss.cause).inc()

    def since(self, at: Micros) -> tuple[Loss, ...]:
        """The stored losses of this time (µs) or later, newest first."""
        return self.losses.since(at)
