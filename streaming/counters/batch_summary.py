"""What a batch of the stream tells the tallies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.frontier import Proven


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """How many changes of each mailbox came out of the settle window.

    ``proven`` is the frontier: up to which canary of each node everything has come out by now.
    ``paused_because`` says why nothing may be repaired now, ``mailboxes_with_findings`` which
    mailboxes have an open finding of a message.
    """

    changes: Mapping[UUID, int] = field(default_factory=dict)
    proven: Proven = field(default_factory=dict)
    paused_because: str | None = None
    mailboxes_with_findings: frozenset[UUID] = frozenset()
