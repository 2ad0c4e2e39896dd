"""The end of a slice: a summary for counters, then settled offsets, then metrics.

The order matters. A summary that is sent twice only widens a counter's interval, and a settled
slice is never sent again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from checkpoints.bookmarks import Bookmark, Bookmarks, KafkaIds, Offsets, Positions, nested
from checkpoints.clock import to_seconds
from reconcilers.capture.chain import Reached
from reconcilers.capture.frontier import Lane, Proven
from reconcilers.counters.open_message import OpenMessage
from reconcilers.words.errors import Retryable
from reconcilers.words.model import SECOND, Micros
from reconcilers.words.waiting import Waiting
from streaming.canary.watch import FrontierWatch
from streaming.counters.batch_summary import BatchSummary
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook

log = logging.getLogger("reconciler")

IDLE_RECORD: Micros = 60 * SECOND
"""How often (µs) a stream without records stores its position, to show that it runs."""


@dataclass(slots=True)
class StreamPosition:
    """Up to where a stream has settled its topics. ``stream`` names its bookmarks.

    ``ids`` returns the ids that the topics had when the stream began. ``commit`` commits to the
    operator's consumer group.
    """

    stream: str
    bookmarks: Bookmarks
    ids: Callable[[], KafkaIds]
    commit: Callable[[Offsets], None]
    _settled: Positions | None = None
    _committed: Positions | None = None

    def record(self, settled: Positions, heard: Mapping[Lane, Reached]) -> None:
        """Store that everything before ``settled`` was looked at, with the canaries received."""
        self.bookmarks.record(Bookmark(self.stream, settled, self.ids(), heard=heard))
        self._settled = settled

    def heard(self) -> Mapping[Lane, Reached]:
        """Each lane's last canary received, as of the last settled slice of any process."""
        newest = self.bookmarks.newest(self.stream)
        return {} if newest is None else newest.heard

    def commit_settled(self) -> None:
        """Commit to the consumer group what was settled since the last call.

        Another thread than that of `record` calls this every few seconds, so that no slice waits.
        """
        settled = self._settled
        if settled is None or settled == self._committed:
            return
        try:
            self.commit(nested(settled))
            self._committed = settled
        except Retryable as failed:  # we never start from these offsets
            log.warning("the consumer group does not show what is settled: %s", failed)

    def recorded_at(self) -> Micros | None:
        """When (µs) a slice of any process was last settled; None if that is not known."""
        newest = self.bookmarks.newest(self.stream)
        return None if newest is None else newest.recorded_at


@dataclass(slots=True)
class BatchSummaries:
    """Sends each slice's summary to the counters: ``take`` receives it.

    ``paused_because`` says why nothing may be repaired. ``open_messages`` returns the messages of
    each mailbox that have an open finding.
    """

    take: Callable[[BatchSummary], None]
    paused_because: Callable[[], Waiting | None]
    open_messages: Callable[[], Mapping[UUID, Sequence[OpenMessage]]]
    _told_at: Micros = 0

    def tell(self, look: BatchLook, proven: Proven, now: Micros) -> None:
        """Send the summary of a slice at a time (µs), with how far each node is looked at."""
        paused, found = self.paused_because(), self.open_messages()
        self.take(BatchSummary(look.changes, proven, paused, found, self._told_at))
        self._told_at = now


@dataclass(slots=True)
class BatchRecord:
    """Records the slices of one family; without ``summaries`` there are no counters."""

    family: str
    position: StreamPosition
    frontier: FrontierWatch
    metrics: Metrics
    clock: Callable[[], Micros]
    summaries: BatchSummaries | None = None
    _recorded_at: Micros = 0

    def start(self) -> None:
        """Continue after the canaries that were received before."""
        self.frontier.begin(self.position.heard())

    def ended(self, look: BatchLook, piece: Slice) -> Proven:
        """Record a finished slice. Returns how far each node is looked at by now."""
        proven = self.frontier.hear(look.echoes, piece.end, piece.done_before)
        now = self.clock()
        if self.summaries is not None:
            self.summaries.tell(look, proven, now)
        if piece.records or abs(now - self._recorded_at) > IDLE_RECORD:
            self.position.record(piece.end, self.frontier.reached())
            self._recorded_at = now
        self._show(look)
        return proven

    def _show(self, look: BatchLook) -> None:
        self.metrics.examined.labels(self.family).inc(look.examined)
        self.metrics.suspects.labels(self.family).inc(len(look.suspects))
        self.metrics.unresolved.inc(look.unresolved)
        self.metrics.last_batch.labels(self.family).set_to_current_time()
        for reason, number in look.bad.items():
            self.metrics.dead_letters.labels(reason).inc(number)
        oldest = look.times.oldest
        age = 0.0 if oldest is None else to_seconds(self.clock() - oldest)
        self.metrics.window_age.labels(self.family).set(age)
