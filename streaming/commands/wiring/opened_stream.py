"""What a stream's process has opened by the time its parts are made."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoints.cassandra import Store
from checkpoints.lease import Lease
from streaming.commands.wiring.stream_names import StreamNames
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.worker import Job
from streaming.settings import Settings
from streaming.topics import Watcher


@dataclass(frozen=True, slots=True)
class OpenedStream:
    """The surroundings of one stream. ``topics`` are all that it reads; observing needs no lease.

    ``accept_loss``: it goes on though events are known to be lost.
    """

    job: Job
    names: StreamNames
    store: Store
    watcher: Watcher
    topics: tuple[str, ...]
    lease: Lease | None
    metrics: Metrics
    accept_loss: bool = False

    @property
    def settings(self) -> Settings:
        """Those of its job."""
        return self.job.settings
