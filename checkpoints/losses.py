"""When and why changes may have been missed, shown until a sweep has compared all (the port)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from checkpoints.lineage import Lineage
from reconcilers.words.model import Micros

log = logging.getLogger("reconciler")


class Cause(StrEnum):
    """What a loss was noticed by; the name is the label of the metric that counts losses."""

    CANARIES = "canaries"
    """Canaries have not come, or none was written for long."""
    RETENTION = "retention"
    """Kafka no longer holds unread records."""
    CAPTURE = "capture"
    """A watched table was not captured for a time, or was recreated or altered."""
    COUNT = "count"
    """A count found a change without an event."""
    OWN_KEYSPACE = "own_keyspace"
    """Our keyspace was lost or restored."""
    PERSON = "person"
    """A person has reported it, or run a command that causes it."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Events of writes before ``at`` (µs) may be missing; ``why`` names the span.

    ``cause`` is counted when the loss is recorded, and is not stored.
    """

    at: Micros
    why: str
    cause: Cause = field(default=Cause.PERSON, compare=False)


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
