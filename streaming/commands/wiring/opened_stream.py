"""The connections and names that a stream's process opens before it builds its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from prometheus_client import CollectorRegistry

from checkpoints.cassandra import CassandraLosses, Store
from checkpoints.clock import now_micros
from checkpoints.lease import Lease
from checkpoints.losses import Cause, Loss, end_memory
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family
from streaming.commands.wiring.stream_names import StreamNames
from streaming.monitoring.losses import CountedLosses
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.worker import Job
from streaming.settings import Settings
from streaming.topics import Watcher


@dataclass(frozen=True, slots=True)
class OpenedStream:
    """The surroundings of one family's stream.

    ``topics`` are all topics that it reads. ``lease`` is None in observe mode. With ``accept_loss``
    it continues although Kafka has deleted unread records. The stream of messages ``leads``: it
    alone shows, counts and commits what a process has once.
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
        """The settings of its job."""
        return self.job.settings

    @property
    def losses(self) -> CountedLosses:
        """The losses of all streams, or of this one if it does not lead; new ones are counted."""
        return CountedLosses(losses_of(self.store, self.job.family), self.metrics)

    @property
    def leads(self) -> bool:
        """Whether it is the stream of messages."""
        return self.job.family.name == MESSAGE.name

    @property
    def once(self) -> Metrics:
        """The metrics of what a process has once; other streams show those nowhere."""
        return self.metrics if self.leads else _shown_nowhere()

    def beside(self, job: Job, watcher: Watcher) -> OpenedStream:
        """The surroundings of another family's stream in this process."""
        return replace(self, job=job, watcher=watcher)

    def end_lineage(self, why: str, cause: Cause) -> None:
        """End lineage: events from before now may be missing. Raises `Retryable`."""
        loss = Loss(now_micros(), why, cause)
        end_memory(self.job.connections().lineage, self.losses.record, loss)


def losses_of(store: Store, family: Family) -> CassandraLosses:
    """The losses of all streams, which that of messages records, or of another family's alone."""
    return (
        CassandraLosses(store)
        if family.name == MESSAGE.name
        else CassandraLosses(store, family.name)
    )


@cache
def _shown_nowhere() -> Metrics:
    return Metrics(CollectorRegistry())
