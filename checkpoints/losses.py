"""When and why changes may have been missed, shown until a sweep has compared all (the port)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from checkpoints.lineage import Lineage
from reconcilers.words.model import Micros

log = logging.getLogger("reconciler")


@dataclass(frozen=True, slots=True)
class Loss:
    """Events of writes before ``at`` (µs) may be missing; ``why`` names the span."""

    at: Micros
    why: str


class Losses(Protocol):
    """The losses of one installation, stored for a year."""

    def record(self, loss: Loss) -> None:
        """Store a loss; durable when this returns, and idempotent."""

    def since(self, at: Micros) -> tuple[Loss, ...]:
        """The losses of this time (µs) or later, newest first."""


def end_memory(lineage: Lineage, record: Callable[[Loss], None], loss: Loss) -> None:
    """End memory because changes may have been missed; nothing is whole until it begins again.

    The loss is recorded first: while lineage still watches, a failed call can be repeated. Raises
    `Retryable`, `Refused`.
    """
    log.error("changes may have been missed: %s; lineage is reset", loss.why)
    record(loss)
    lineage.stop_watching()
