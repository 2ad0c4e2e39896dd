"""The driver of a stream, put together: what is asked for each batch, and what keeps it alive."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from checkpoints import fingerprint
from checkpoints.cassandra import CassandraBookmarks
from checkpoints.clock import now_micros, to_micros
from reconcilers.policy import BreakerLimits
from streaming.commands.opened import OpenedStream
from streaming.counters.batch_summary import BatchSummary
from streaming.monitoring.clocks import ClockWatch
from streaming.monitoring.lag import LagWatch
from streaming.pipeline.admission import AdmissionControl
from streaming.pipeline.batch_record import BatchRecord, BatchSummaries, StreamPosition
from streaming.pipeline.batches import Batches
from streaming.pipeline.open_findings import OpenFindings
from streaming.pipeline.query import FamilyQuery
from streaming.pipeline.scheduled import ExpiredCells
from streaming.pipeline.session import spark_session
from streaming.pipeline.starting import StartingPoint
from streaming.pipeline.supervisor import Measurements, QuerySupervisor
from streaming.settings import RepairSettings, Settings
from streaming.tables import Nodes, connect

TakeSummary = Callable[[BatchSummary], None]


def supervisor(opened: OpenedStream, counters: TakeSummary | None) -> QuerySupervisor:
    """Keeps the stream alive; ``counters`` hear of each batch, if there are any.

    Raises `IncompatibleCheckpoint` before Spark is started, which takes long.
    """
    settings, names, metrics = opened.settings, opened.names, opened.metrics
    made_with = _fingerprint(opened)
    fingerprint.check(names.checkpoint, made_with)
    clocks = ClockWatch(Nodes(connect(settings.cassandra)), settings.stream.delay, metrics)
    lag = LagWatch(opened.watcher, opened.topics, metrics)
    decisions = batches(opened, clocks, lag, counters)
    query = FamilyQuery(
        spark_session(settings.stream),
        opened.job,
        names.checkpoint,
        decisions,
        opened.watcher.partitions,
    )
    starting = StartingPoint(
        opened.watcher,
        opened.topics,
        to_micros(settings.stream.window),
        bookmarks=decisions.recent_bookmarks,
        events_lost=decisions.events_lost,
        accept_loss=opened.accept_loss,
    )
    return QuerySupervisor(
        query=query,
        decisions=decisions,
        starting=starting,
        measurements=Measurements(clocks, lag, decisions.read_up_to),
        metrics=metrics,
        fingerprint=made_with,
        restart_backoff_max=settings.stream.restart_backoff_max,
    )


def _fingerprint(opened: OpenedStream) -> fingerprint.Fingerprint:
    settings = opened.settings
    return fingerprint.Fingerprint(
        opened.topics,
        (opened.job.family.name,),
        settings.stream.shuffle_partitions,
        settings.kafka.topic_prefix,
    )


def batches(
    opened: OpenedStream, clocks: ClockWatch, lag: LagWatch, counters: TakeSummary | None
) -> Batches:
    """What is asked for each batch."""
    ours, family, settings = opened.job.connections(), opened.job.family, opened.settings
    metrics, name = opened.metrics, opened.names.bookmarks(family)
    commit = partial(opened.watcher.commit, opened.names.group)
    findings = OpenFindings(family, ours.journal, metrics, name, _asked_again_after(settings))
    admission = AdmissionControl(
        family=family,
        journal=ours.journal,
        limits=limits_of(settings.repair),
        mode=opened.names.mode,
        lease=opened.lease,
        clock_trouble=clocks.trouble,
        metrics=metrics,
    )
    summaries = counters and BatchSummaries(
        take=counters,
        window=to_micros(settings.stream.window),
        lag=lag.lag,
        paused_because=admission.paused_because,
        mailboxes=findings.mailboxes,
    )
    position = StreamPosition(name, CassandraBookmarks(opened.store), commit)
    record = BatchRecord(family.name, position, metrics, now_micros, summaries)
    return Batches(
        admission, findings, ExpiredCells(ours.expiries), record, ours.lineage, now_micros
    )


def limits_of(repair: RepairSettings) -> BreakerLimits:
    """When a breaker opens, from the settings."""
    return BreakerLimits(
        repair.suspects_per_minute,
        repair.suspect_share,
        repair.removals_per_minute,
        repair.removal_share,
        repair.share_min_keys,
    )


def _asked_again_after(settings: Settings) -> int:
    """By then (µs) a look that was asked for has happened: it was settled, read and recorded."""
    return max(to_micros(settings.repair.recheck_interval), 4 * to_micros(settings.stream.delay))
