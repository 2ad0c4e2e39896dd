"""What a batch of the stream tells the tallies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.capture.frontier import Proven
from reconcilers.counters.open_message import OpenMessage
from reconcilers.words.waiting import Waiting


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """How many changes of each mailbox came out of the settle window.

    ``proven`` is the frontier: up to which canary of each node everything has come out by now.
    ``paused_because`` says why nothing may be repaired now, ``open_messages`` which
    messages of each mailbox have an open finding.
    """

    changes: Mapping[UUID, int] = field(default_factory=dict)
    proven: Proven = field(default_factory=dict)
    paused_because: Waiting | None = None
    open_messages: Mapping[UUID, Sequence[OpenMessage]] = field(default_factory=dict)
