"""What a batch of the stream tells the tallies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.model import Micros


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """How many changes of each mailbox came out of the settle window. Times are µs.

    What was read up to ``settled_up_to`` has come out. ``lag`` is how long the newest change took
    to be captured, or how far the stream is behind Kafka. ``paused_because`` says why nothing may
    be repaired now, ``mailboxes_with_findings`` which mailboxes have an open finding of a message.
    """

    settled_up_to: Micros = 0
    changes: Mapping[UUID, int] = field(default_factory=dict)
    lag: Micros = 0
    paused_because: str | None = None
    mailboxes_with_findings: frozenset[UUID] = frozenset()
