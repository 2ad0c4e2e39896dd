"""What is kept and told at the end of a batch: bookmark, offsets, metrics, a summary for counters.

Spark commits a batch after this: one that dies before is executed again, and recorded again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from checkpoints.bookmarks import Bookmark, Bookmarks, Offsets
from checkpoints.clock import to_seconds
from checkpoints.directory import Planned
from reconcilers.model import Micros
from streaming.counters.batch_summary import BatchSummary
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.worker import BatchLook


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """Which batch, of which checkpoint, and what it read.

    ``start`` lacks the partitions that were read from their beginning, as far as is known.
    """

    checkpoint: str
    batch_id: int
    start: Offsets
    plan: Planned

    @property
    def name(self) -> str:
        """The same when the batch is executed again."""
        return f"{self.checkpoint}/{self.batch_id}"


@dataclass(slots=True)
class StreamPosition:
    """Up to where a stream has read. ``stream`` names its bookmarks.

    ``commit`` tells the operator's consumer group. ``read_up_to`` is where the last batch of this
    process ended; empty before that.
    """

    stream: str
    bookmarks: Bookmarks
    commit: Callable[[Offsets], None]
    read_up_to: Offsets = field(default_factory=dict)

    def record(self, batch: BatchPlace) -> None:
        """The batch has ended."""
        plan = batch.plan
        self.bookmarks.record(
            Bookmark(
                self.stream,
                batch.checkpoint,
                batch.batch_id,
                plan.batch_time,
                plan.watermark,
                batch.start,
                plan.end,
            )
        )
        self.commit(plan.end)
        self.read_up_to = plan.end

    def recorded_at(self) -> Micros | None:
        """When the last batch of any process ended, None when none is known."""
        newest = self.bookmarks.newest(self.stream)
        return None if newest is None else newest.recorded_at

    def recent(self) -> list[Bookmark]:
        """Where a fresh checkpoint may begin."""
        return self.bookmarks.recent(self.stream)


@dataclass(slots=True)
class BatchSummaries:
    """Tells the counters of each batch: ``take`` is given its summary.

    ``window`` is W (µs), ``lag`` how far the stream is behind Kafka (µs). ``paused_because`` says
    why nothing may be repaired, ``mailboxes`` which have an open finding of a message.
    """

    take: Callable[[BatchSummary], None]
    window: Micros
    lag: Callable[[], Micros]
    paused_because: Callable[[], str | None]
    mailboxes: Callable[[], frozenset[UUID]]
    _read_at: Micros = 0

    def start(self, now: Micros) -> None:
        """What the first batch reads has waited since now."""
        self._read_at = now

    def tell(self, look: BatchLook, plan: Planned, captured_in: Micros) -> None:
        """What a batch read had waited since the one before it at most: 2 L are for both."""
        read_at = plan.batch_time
        waited, self._read_at = read_at - (self._read_at or read_at), read_at
        summary = BatchSummary(
            settled_up_to=plan.watermark - self.window,
            changes=look.changes,
            lag=max(self.lag(), captured_in, (captured_in + waited) // 2),
            paused_because=self.paused_because(),
            mailboxes_with_findings=self.mailboxes(),
        )
        self.take(summary)


@dataclass(slots=True)
class BatchRecord:
    """Records the batches of one family; without ``summaries`` nobody counts."""

    family: str
    position: StreamPosition
    metrics: Metrics
    clock: Callable[[], Micros]
    summaries: BatchSummaries | None = None
    _freshest: Micros = 0

    def start(self, now: Micros) -> None:
        """This process begins to read."""
        if self.summaries is not None:
            self.summaries.start(now)

    def ended(self, look: BatchLook, batch: BatchPlace) -> None:
        """The batch is done."""
        self.position.record(batch)
        self.metrics.examined.labels(self.family).inc(look.examined)
        self.metrics.unresolved.inc(look.unresolved)
        self.metrics.last_batch.labels(self.family).set_to_current_time()
        for reason, number in look.bad.items():
            self.metrics.dead_letters.labels(reason).inc(number)
        captured_in = self._captured_in(look)
        if self.summaries is not None:
            self.summaries.tell(look, batch.plan, captured_in)
        age = 0.0 if look.oldest is None else to_seconds(self.clock() - look.oldest)
        self.metrics.window_age.set(age)

    def _captured_in(self, look: BatchLook) -> Micros:
        """How long the newest write took; 0 without a newer one: old events are sent again."""
        if look.freshest is None or look.freshest[0] <= self._freshest:
            return 0
        self._freshest, captured_in = look.freshest
        self.metrics.capture_delay.set(to_seconds(captured_in))
        return captured_in
