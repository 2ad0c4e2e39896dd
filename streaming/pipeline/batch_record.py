"""What is kept and told at the end of a slice: a summary for counters, settled offsets, metrics.

In this order: told twice only widens a counter's interval, and what is settled is never told again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from uuid import UUID

from checkpoints.bookmarks import Bookmark, Bookmarks, KafkaIds, Offsets, Positions, nested
from checkpoints.clock import to_seconds
from reconcilers.capture.chain import Reached
from reconcilers.capture.frontier import Echo, Lane, Proven
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
"""A stream that has nothing to settle says so once in this time: it lives."""


@dataclass(slots=True)
class StreamPosition:
    """Up to where a stream has settled its topics. ``stream`` names its bookmarks.

    ``ids`` are those that the topics had when the stream began. ``commit`` tells the operator's
    consumer group.
    """

    stream: str
    bookmarks: Bookmarks
    ids: Callable[[], KafkaIds]
    commit: Callable[[Offsets], None]
    _settled: Positions | None = None
    _committed: Positions | None = None

    def record(self, settled: Positions, heard: Mapping[Lane, Reached]) -> None:
        """Everything before these positions has been looked at; so far each lane was heard."""
        self.bookmarks.record(Bookmark(self.stream, settled, self.ids(), heard=heard))
        self._settled = settled

    def heard(self) -> Mapping[Lane, Reached]:
        """Up to which canary each lane was heard, when a slice of any process was last settled."""
        newest = self.bookmarks.newest(self.stream)
        return {} if newest is None else newest.heard

    def commit_settled(self) -> None:
        """Tell the consumer group what was settled since the last call, if anything was.

        Called by another thread than `record`, every few seconds: no slice waits for it.
        """
        settled = self._settled
        if settled is None or settled == self._committed:
            return
        try:
            self.commit(nested(settled))
            self._committed = settled
        except Retryable as failed:  # nothing of ours begins there
            log.warning("the consumer group does not show what is settled: %s", failed)

    def recorded_at(self) -> Micros | None:
        """When a slice of any process was last settled, None when none is known."""
        newest = self.bookmarks.newest(self.stream)
        return None if newest is None else newest.recorded_at


@dataclass(slots=True)
class BatchSummaries:
    """Tells the counters of each slice: ``take`` is given its summary.

    ``paused_because`` says why nothing may be repaired, ``open_messages`` which messages of
    each mailbox have an open finding.
    """

    take: Callable[[BatchSummary], None]
    paused_because: Callable[[], Waiting | None]
    open_messages: Callable[[], Mapping[UUID, Sequence[OpenMessage]]]

    def tell(self, look: BatchLook, proven: Proven) -> None:
        """A slice is done, and so far everything has come out."""
        summary = BatchSummary(
            changes=look.changes,
            proven=proven,
            paused_because=self.paused_because(),
            open_messages=self.open_messages(),
        )
        self.take(summary)


def in_order(echoes: Iterable[tuple[int, Echo]]) -> list[Echo]:
    """Those of a slice, by their offsets."""
    return [echo for _, echo in sorted(echoes, key=itemgetter(0))]


@dataclass(slots=True)
class BatchRecord:
    """Records the slices of one family; without ``summaries`` nobody counts."""

    family: str
    position: StreamPosition
    frontier: FrontierWatch
    metrics: Metrics
    clock: Callable[[], Micros]
    summaries: BatchSummaries | None = None
    _recorded_at: Micros = 0

    def start(self) -> None:
        """Go on after the canaries that were heard."""
        self.frontier.begin(self.position.heard())

    def ended(self, look: BatchLook, piece: Slice) -> Proven:
        """The slice is done, and what became of it is kept; returns what has come out by now."""
        proven = self.frontier.hear(in_order(look.echoes), piece.end, piece.done_before)
        if self.summaries is not None:
            self.summaries.tell(look, proven)
        now = self.clock()
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
        age = 0.0 if look.oldest is None else to_seconds(self.clock() - look.oldest)
        self.metrics.window_age.set(age)
