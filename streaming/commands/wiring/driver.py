"""Builds the driver of a stream: the decisions for each batch, and the supervisor of the query."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from checkpoints.bookmarks import Bookmarks, Offsets, Place
from checkpoints.cassandra import CassandraBookmarks, CassandraFailingSlices
from checkpoints.clock import now_micros, to_micros
from checkpoints.journal import Journal
from reconcilers.capture.frontier import Frontier, FrontierRules
from reconcilers.declared.family import Family
from reconcilers.limits.breakers import BreakerLimits
from reconcilers.limits.ceiling import MINUTE
from streaming.canary.alone import CanariesAlone
from streaming.canary.memory_watch import Memories, MemoryReport, MemoryWatch
from streaming.canary.no_memory import NoMemoryWatch
from streaming.canary.watch import FrontierWatch
from streaming.commands.wiring.beside import Beside
from streaming.commands.wiring.canaries import canaries
from streaming.commands.wiring.generations import growing
from streaming.commands.wiring.opened_stream import OpenedStream
from streaming.commands.wiring.schema_watch import SchemaWatch
from streaming.commands.wiring.stream_names import StreamNames
from streaming.counters.batch_summary import BatchSummary
from streaming.monitoring.clocks import ClockWatch
from streaming.monitoring.lag import LagWatch
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.admission import AdmissionControl
from streaming.pipeline.batch_record import BatchRecord, BatchSummaries, StreamPosition
from streaming.pipeline.batches import Batches
from streaming.pipeline.behind import BehindWatch, judged_within, longest_age_of
from streaming.pipeline.breakers import BreakerWatch
from streaming.pipeline.ceiling import WriteCeiling
from streaming.pipeline.failures import SliceFailures
from streaming.pipeline.family_thread import FamilyThread
from streaming.pipeline.held_looks import HeldLooks
from streaming.pipeline.open_findings import OpenFindings
from streaming.pipeline.pause_report import PauseReport
from streaming.pipeline.query import FamilyQuery
from streaming.pipeline.range_reader import RangeReader
from streaming.pipeline.ranges import Ranges
from streaming.pipeline.record_search import SearchedReader
from streaming.pipeline.sample_events import SampleReader
from streaming.pipeline.scheduled_looks import ExpiredCells
from streaming.pipeline.session import spark_session
from streaming.pipeline.slice_work import SliceWork
from streaming.pipeline.spark_files import CheckpointFolder
from streaming.pipeline.spark_state import RunningSpark
from streaming.pipeline.starting_point import OtherStream, StartingPoint
from streaming.pipeline.supervisor import Measurements, Overdue, QuerySupervisor
from streaming.pipeline.suspect_cap import Cap
from streaming.pipeline.temporary import sparks_folders
from streaming.settings import Mode, RepairSettings, Settings
from streaming.tables import Nodes, connect
from streaming.topics import FewRecords, came_astray

TakeSummary = Callable[[BatchSummary], None]


def supervisor(
    opened: OpenedStream,
    schema: SchemaWatch,
    counters: TakeSummary | None = None,
    beside: Beside | None = None,
    sampled: SampleReader | None = None,
) -> QuerySupervisor:
    """Keeps a family running; ``counters``, if given, receives the summary of each slice.

    A family that does not lead runs ``beside``. ``sampled`` receives the sampled changes.
    """
    settings, names, once = opened.settings, opened.names, opened.once
    stream = settings.stream
    clocks = ClockWatch(Nodes(connect(settings.cassandra)), stream.delay, once)
    lag = LagWatch(opened.watcher, opened.topics, once)
    bookmarks, name = CassandraBookmarks(opened.store), names.bookmarks(opened.job.family)
    memory = _memory(opened)
    frontier = _frontier(opened, memory)
    starting = _starting_point(opened, bookmarks, frontier, memory)
    commit = growing(opened).commit if opened.leads else _commit_nothing
    position = StreamPosition(name, bookmarks, starting.ids, commit)
    decisions = batches(opened, clocks, counters, position, frontier, memory)
    ranges = Ranges(SliceFailures(CassandraFailingSlices(opened.store), name))
    running = RunningSpark(spark_session(settings))
    checks = (running.check, sparks_folders(stream).check, schema.check)
    return QuerySupervisor(
        query=_query(opened, decisions, ranges, beside, sampled),
        decisions=decisions,
        starting=starting,
        measurements=Measurements(clocks, lag, position.commit_settled, checks),
        metrics=opened.metrics,
        overdue=Overdue(2 * (stream.delay + stream.window)),
        restart_backoff_max=stream.restart_backoff_max,
    )


def _query(
    opened: OpenedStream,
    decisions: Batches,
    ranges: Ranges,
    beside: Beside | None,
    sampled: SampleReader | None,
) -> FamilyQuery | FamilyThread:
    """What runs the family: a query of Spark, or a thread beside it."""
    job = opened.job
    spark = spark_session(job.settings)
    reader = RangeReader(spark, job, Cap.of_a_share)
    if beside is not None:
        searched = SearchedReader(job.family.name, beside.search, reader)
        return FamilyThread(SliceWork(spark, job, decisions, ranges, searched), beside.ends)
    folder = CheckpointFolder(spark, opened.names.checkpoint)
    work = SliceWork(spark, job, decisions, ranges, reader)
    return FamilyQuery(work, folder, opened.watcher.partitions, sampled)


def _starting_point(
    opened: OpenedStream,
    bookmarks: CassandraBookmarks,
    frontier: FrontierWatch,
    memory: Memories,
) -> StartingPoint:
    names, family = opened.names, opened.job.family
    return StartingPoint(
        opened.watcher,
        opened.topics,
        bookmark=partial(bookmarks.newest, names.bookmarks(family)),
        other=other_stream(opened.settings, names.mode, family, bookmarks, frontier),
        events_lost=partial(_records_lost, frontier, memory),
        accept_loss=opened.accept_loss,
    )


def other_stream(
    settings: Settings, mode: Mode, family: Family, bookmarks: Bookmarks, frontier: FrontierWatch
) -> OtherStream:
    """The stream of this installation in the other mode."""
    names = StreamNames.of(settings, Mode.OBSERVE if mode is Mode.REPAIR else Mode.REPAIR)
    newest = partial(bookmarks.newest, names.bookmarks(family))
    return OtherStream(newest, (names.suspects_topic,), frontier.begin)


def batches(
    opened: OpenedStream,
    clocks: ClockWatch,
    counters: TakeSummary | None,
    position: StreamPosition,
    frontier: FrontierWatch,
    memory: Memories,
) -> Batches:
    """The decisions for each slice."""
    ours, family, settings = opened.job.connections(), opened.job.family, opened.settings
    once, name = opened.once, position.stream
    findings = _open_findings(opened, name)
    admission = AdmissionControl(
        family=family,
        breakers=_breakers(ours.journal, settings, once),
        mode=opened.names.mode,
        lease=opened.lease,
        clock_trouble=clocks.trouble,
        metrics=once,
        pauses=PauseReport(ours.pauses, once, memory.doubted),
        findings=findings,
    )
    summaries = counters and BatchSummaries(
        take=counters,
        paused_because=admission.paused_because,
        open_messages=findings.messages,
    )
    record = BatchRecord(family.name, position, frontier, opened.metrics, now_micros, summaries)
    return Batches(
        admission=admission,
        ceiling=WriteCeiling(settings.repair.writes_per_minute),
        open_findings=findings,
        expired=ExpiredCells(ours.expiries),
        record=record,
        memory=memory,
        alone=_alone(settings),
        behind=_behind(settings, frontier, once),
    )


def _alone(settings: Settings) -> CanariesAlone:
    topic, keyspace = settings.kafka.topic_prefix, settings.canary.keyspace
    return CanariesAlone(FewRecords(settings.kafka).read, topic, keyspace, came_astray)


def _behind(settings: Settings, frontier: FrontierWatch, metrics: Metrics) -> BehindWatch:
    """Measures how far the stream is behind. The frontier may lead our clock by at most D/2."""
    skew = to_micros(settings.stream.delay / 2)
    return BehindWatch(frontier, longest_age_of(settings), skew, now_micros, metrics)


def _breakers(journal: Journal, settings: Settings, metrics: Metrics) -> BreakerWatch:
    """The breaker of repairs.

    A key that comes back counts once in the time of the two looks of a removal. A key that these
    looks cannot decide counts once in the time of all its looks.
    """
    once_in = max(2 * MINUTE, to_micros(2 * (settings.stream.delay + settings.stream.window)))
    put_off_for = max(once_in, judged_within(settings))
    return BreakerWatch(journal, limits_of(settings.repair), metrics, once_in, put_off_for)


def _open_findings(opened: OpenedStream, name: str) -> OpenFindings:
    """The open findings of this stream; in repair mode held ones come back at a pace."""
    family, settings = opened.job.family, opened.settings
    limits = limits_of(settings.repair) if opened.names.mode is Mode.REPAIR else None
    paced = HeldLooks(family.listing.name, limits)
    journal, again = opened.job.connections().journal, _asked_again_after(settings)
    return OpenFindings(family, journal, opened.metrics, name, again, paced)


def _commit_nothing(_settled: Offsets) -> None:
    """The stream of messages commits for the process."""


def _frontier(opened: OpenedStream, memory: Memories) -> FrontierWatch:
    settings, canary = opened.settings, opened.settings.canary
    rules = FrontierRules(to_micros(canary.lost_after), to_micros(canary.longest_pause))
    return FrontierWatch(
        Frontier(rules),
        settings.kafka.topic_prefix,
        Nodes(connect(settings.cassandra)).ids,
        memory.lost,
        opened.once,
    )


def _memory(opened: OpenedStream) -> Memories:
    lineage, losses = opened.job.connections().lineage, opened.losses
    if not opened.job.family.remembered:
        return NoMemoryWatch(losses, now_micros)
    return MemoryWatch(
        lineage, losses, canaries(opened.settings), now_micros, MemoryReport(opened.metrics)
    )


def _records_lost(frontier: FrontierWatch, memory: Memories, places: Collection[Place]) -> None:
    """Restart lineage now, and the canaries of these partitions."""
    named = ", ".join(f"{topic}/{number}" for topic, number in sorted(places))
    memory.lost_until_now(f"Kafka no longer holds unread records of {named}")
    frontier.begin_anew(places)


def limits_of(repair: RepairSettings) -> BreakerLimits:
    """The limits at which a breaker opens."""
    return BreakerLimits(
        repair.suspects_per_minute,
        repair.suspect_share,
        repair.removals_per_minute,
        repair.removal_share,
        repair.share_min_keys,
    )


def _asked_again_after(settings: Settings) -> int:
    """How long (µs) it takes at most until a requested look was settled, read and recorded."""
    return max(to_micros(settings.repair.recheck_interval), 4 * to_micros(settings.stream.delay))
