"""What a batch of the stream tells the tallies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.model import Micros


@dataclass(frozen=True, slots=True)
class Came:
    """How many changes of each mailbox came out of the settle window. Times are µs.

    What was read up to ``settled`` has come out. ``late`` is how long the newest change took to be
    captured, or how far the stream is behind Kafka. ``refused`` says why nothing may be repaired
    now, ``unsettled`` which mailboxes have an open finding of a message.
    """

    settled: Micros = 0
    changes: Mapping[UUID, int] = field(default_factory=dict)
    late: Micros = 0
    refused: str | None = None
    unsettled: frozenset[UUID] = frozenset()
