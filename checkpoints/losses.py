"""When changes may have been missed, and why: told until a sweep makes it good (the port).

Implementations: `checkpoints.cassandra.CassandraLosses` (the real one) and
`tests.fakes.checkpoints.losses.MemoryLosses` (the fake); one contract test runs against both.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

from checkpoints.lineage import Lineage
from reconcilers.words.model import Micros

log = logging.getLogger("reconciler")


@dataclass(frozen=True, slots=True)
class Loss:
    """What was written before ``at`` (µs) may never have been heard of; ``why`` names the span."""

    at: Micros
    why: str


class Losses(Protocol):
    """Of one installation, kept for a year."""

    def record(self, loss: Loss) -> None:
        """Durable when it returns; the same once more is the same."""

    def since(self, at: Micros) -> tuple[Loss, ...]:
        """Those of this time (µs) or later, the newest first."""


def end_memory(lineage: Lineage, losses: Losses, loss: Loss) -> None:
    """End memory because changes may have been missed; nothing is whole until it begins again.

    The loss is recorded first: while lineage still watches, a failed call can be repeated. Raises
    `Retryable`, `Refused`.
    """
    log.error("changes may have been missed: %s; memory begins anew", loss.why)
    losses.record(loss)
    lineage.stop_watching()
