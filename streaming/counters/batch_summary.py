"""What a batch of the stream reports to the counting thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.capture.frontier import Proven
from reconcilers.counters.open_message import OpenMessage
from reconcilers.words.model import Micros
from reconcilers.words.waiting import Waiting


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """How many ``changes`` of each mailbox were released from the settle window.

    Their chunks were marked after ``since`` (µs), when the summary before this one was made.
    ``proven`` is the frontier, ``paused_because`` why nothing may be repaired now, and
    ``open_messages`` the messages of each mailbox that have an open finding.
    """

    changes: Mapping[UUID, int] = field(default_factory=dict)
    proven: Proven = field(default_factory=dict)
    paused_because: Waiting | None = None
    open_messages: Mapping[UUID, Sequence[OpenMessage]] = field(default_factory=dict)
    since: Micros = 0
