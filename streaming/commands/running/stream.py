"""``reconcile stream``: the long-running job. It opens all that it needs, in this order.

If the query dies, it is restarted.

::

    settings ─▶ own keyspace ─▶ lease ─▶ tables, topics ─▶ settled offsets ─▶ query
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from threading import Event, Thread

from prometheus_client import CollectorRegistry

from checkpoints.cassandra import Store
from checkpoints.losses import Cause
from reconcilers.declared.family import Family
from reconcilers.declared.unheard import of_user_types
from reconcilers.words.errors import Misconfigured
from streaming.commands.look.web import pages
from streaming.commands.running.canary import start_canaries
from streaming.commands.running.leases import Holding, clocks_apart
from streaming.commands.running.own_sweeps import OwnSweeps, schedule_of
from streaming.commands.running.sampler import start_sampler
from streaming.commands.running.servers import until_answered
from streaming.commands.running.signals import Signalled, stopped_by_signals
from streaming.commands.running.standby import StandBy
from streaming.commands.running.threads import Threads, told_to_systemd
from streaming.commands.wiring import workers
from streaming.commands.wiring.beside import Beside, beside_of
from streaming.commands.wiring.canaries import canaries
from streaming.commands.wiring.counter_loop import build_counter_loop
from streaming.commands.wiring.driver import supervisor
from streaming.commands.wiring.generations import begin_generation
from streaming.commands.wiring.james_version import refuse_unfinished_migration
from streaming.commands.wiring.opened_stream import OpenedStream
from streaming.commands.wiring.sampler import sampler_of
from streaming.commands.wiring.schema_watch import SchemaWatch, bound
from streaming.commands.wiring.stream_names import StreamNames
from streaming.commands.wiring.used_tables import used
from streaming.counters.thread import CountingThread
from streaming.monitoring.agents import AgentWatch, asking
from streaming.monitoring.endpoint import health_routes, serve
from streaming.monitoring.health import SLOW_HUNG_AFTER, readiness
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.sweeps import SweepReport
from streaming.monitoring.unheard import UnheardTables, UnheardWatch
from streaming.pipeline.executors import EndWithoutExecutors
from streaming.pipeline.needs import refuse_without_spark
from streaming.pipeline.session import spark_session
from streaming.pipeline.spark_state import RunningSpark
from streaming.settings import Mode, Settings, refuse_unsafe
from streaming.tables import Cluster, RecentWrites, connect, schema_of, watch_addresses
from streaming.tables.guardrails import refuse_guardrails
from streaming.tables.own_keyspace import make_own
from streaming.tables.replication import refuse_guessed_levels, refuse_too_few_copies
from streaming.topics import Watcher, own_topics

log = logging.getLogger("reconciler")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile stream --mode observe|repair``."""
    parser.add_argument("--mode", choices=[each.value for each in Mode], default=Mode.OBSERVE.value)
    parser.add_argument(
        "--accept-loss", action="store_true", help="go on though Kafka's retention has passed"
    )
    parser.add_argument(
        "--events-lost",
        action="store_true",
        help="events from before now may be missing: lineage is reset",
    )
    parser.add_argument(
        "--standby",
        action="store_true",
        help="wait while another stream holds the lease, and take over when it ends",
    )
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT; returns 0 after a clean stop. Raises `ReconcilerError`."""
    stop = stopped_by_signals()
    options = StreamOptions(arguments.accept_loss, arguments.events_lost, arguments.standby)
    try:
        with stop.first(""):
            run_stream(settings, Mode(arguments.mode), stop, options)
    except Signalled as signalled:
        log.warning("stopped while it failed: %s", signalled.__cause__)
    return 0


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What an operator asks of a start.

    ``accept_loss``: continue although Kafka has deleted unread records. ``events_lost``: events
    before now may be missing. ``standby``: wait while another stream holds the lease.
    """

    accept_loss: bool = False
    events_lost: bool = False
    standby: bool = False


def run_stream(
    settings: Settings, mode: Mode, stop: Event, options: StreamOptions = StreamOptions()
) -> None:
    """Run until told to stop. Raises `ReconcilerError`.

    It waits for servers that do not answer: before the lease for Cassandra, then for both.
    """
    refuse_unsafe(settings, mode)
    if options.standby and mode is not Mode.REPAIR:
        raise Misconfigured("--standby needs --mode repair: a stream that observes has no lease")
    refuse_without_spark(settings)
    names = StreamNames.of(settings, mode)
    threads, metrics = Threads(stop), Metrics(CollectorRegistry())
    routes = dict(health_routes(threads.health))
    port = threads.before_waiting = cache(partial(serve, metrics, settings.metrics, routes=routes))
    with told_to_systemd(threads):
        store = until_answered(threads, partial(_own, settings, mode))
        routes |= pages(settings, threads.health, metrics)
        skew = clocks_apart(settings.stream)
        waiter = StandBy(names, store, threads, skew) if options.standby else None
        with Holding(names, store, threads, skew, waiter) as lease:
            if waiter is not None:  # a newer version may have changed it meanwhile
                until_answered(threads, partial(_own, settings, mode))
            threads.health.checks += readiness(settings.stream, metrics, lease)
            sources = until_answered(threads, partial(_sources, settings, mode))
            metrics.begin(settings.cassandra.keyspace, mode)
            log.info("watching in %s mode; metrics on port %s", names.mode, port())
            family, topics = (
                sources.families[0],
                (settings.kafka.topic_prefix, names.suspects_topic),
            )
            job = workers.job(settings, family, names.suspects_topic)
            opened = OpenedStream(
                job, names, store, sources.watcher, topics, lease, metrics, options.accept_loss
            )
            if options.events_lost:
                opened.end_lineage("an operator says so", Cause.PERSON)
            _watch(opened, threads)
            _run_all(opened, used(settings, sources.families), sources.schema, threads)
            sources.watcher.close()


@dataclass(frozen=True, slots=True)
class StreamSources:
    """The tables and topics of a stream, as they are at its start."""

    families: tuple[Family, ...]
    schema: SchemaWatch
    watcher: Watcher


def _own(settings: Settings, mode: Mode) -> Store:
    """Our own keyspace. Raises `ReconcilerError`."""
    if mode is Mode.REPAIR:
        refuse_guessed_levels(settings.cassandra)
    store = make_own(settings.cassandra)
    if mode is Mode.REPAIR:
        refuse_too_few_copies(settings.cassandra)
    refuse_guardrails(store)
    return store


def _sources(settings: Settings, mode: Mode) -> StreamSources:
    """Read the tables, and create our topics. Raises `ReconcilerError`."""
    james = partial(schema_of, connect(settings.cassandra), settings.cassandra.keyspace)
    schema = james()
    families = bound(settings, schema)
    if mode is Mode.REPAIR:
        refuse_unfinished_migration(settings, Cluster(connect(settings.cassandra)), schema)
    watcher = Watcher(settings.kafka)
    with ExitStack() as unless_complete:
        unless_complete.callback(watcher.close)
        _prepare_topics(settings, watcher)
        unless_complete.pop_all()
    return StreamSources(families, SchemaWatch(settings, families, james), watcher)


def _watch(opened: OpenedStream, threads: Threads) -> None:
    """Start the threads that watch servers, and write canaries."""
    settings = opened.settings
    threads.start("addresses", partial(watch_addresses, settings.cassandra))
    if settings.agent.http:
        agents = AgentWatch(settings.agent.http, opened.metrics, asking(settings.agent))
        threads.start("agents", agents.run)
    begin_generation(opened)
    start_canaries(settings, opened.store, threads)


def _run_all(
    opened: OpenedStream, families: tuple[Family, ...], schema: SchemaWatch, threads: Threads
) -> None:
    """Run the stream of messages, with those of other families and the counters beside it."""
    counting = _counters(opened, tuple(each for each in families if each.tallies))
    sampled = sampler_of(opened)
    keeper = supervisor(
        opened,
        schema,
        counters=None if counting is None else counting.take,
        sampled=None if sampled is None else sampled.changes,
    )
    _watch_unheard(opened, families, schema, threads)
    _watch_executors(opened, threads)
    others = [each for each in families[1:] if each.projections]
    beside = [_beside(opened, each) for each in others]
    shared = beside_of(opened, beside) if beside else None
    running = [_start(each, schema, shared, threads) for each in beside]
    if counting is not None:
        threads.start("counting", counting.run, SLOW_HUNG_AFTER)
    start_sampler(sampled, threads)
    _sweep_by_itself((opened, *beside), threads)
    try:
        keeper.run(threads.health.watched(threads.health.supervising, threads.stop))
    finally:
        threads.stop.set()
        for each in running:
            each.join()
        threads.check()  # what ended a thread is why all else failed
    log.info("stopped; the next start continues after the settled offsets")


def _beside(opened: OpenedStream, family: Family) -> OpenedStream:
    """The surroundings of another family's stream."""
    job = workers.job_of(opened.settings, family, opened.names.suspects_topic)
    return opened.beside(job, Watcher(opened.settings.kafka))


def _start(
    opened: OpenedStream, schema: SchemaWatch, shared: Beside | None, threads: Threads
) -> Thread:
    """Start the stream of another family, in a thread of its own."""
    begin_generation(opened)
    run = supervisor(opened, schema, beside=shared).run
    return threads.start(f"stream of {opened.job.family.name}", run)


def _watch_unheard(
    opened: OpenedStream, families: tuple[Family, ...], schema: SchemaWatch, threads: Threads
) -> None:
    """Start the thread that compares late writes with events, if a table needs it."""
    settings, columns = opened.settings, schema.schema()
    if not of_user_types(families, columns):
        return
    keyspace, topic = settings.cassandra.keyspace, settings.kafka.topic_prefix
    writes = RecentWrites(connect(settings.cassandra), keyspace)
    tables = UnheardTables(writes, Watcher(settings.kafka), keyspace, topic)
    watch = UnheardWatch(tables, families, columns, opened.metrics)
    threads.start("captured tables", watch.run)


def _watch_executors(opened: OpenedStream, threads: Threads) -> None:
    """Start the thread that ends a stream without executors; not with a master of this host."""
    stream = opened.settings.stream
    if not stream.is_local:
        spark, show = RunningSpark(spark_session(opened.settings)), opened.metrics.executors.set
        watch = EndWithoutExecutors(spark, show, stream.executors_within)
        threads.start("executors", watch.run)


def _sweep_by_itself(opened: Sequence[OpenedStream], threads: Threads) -> None:
    """Start the thread that sweeps when it is due, and shows the sweeps of all processes."""
    settings, report = opened[0].settings, SweepReport(opened[0].metrics)
    sweeps = OwnSweeps(opened, schedule_of(settings), Watcher(settings.kafka), report)
    threads.start("sweep", sweeps.run, SLOW_HUNG_AFTER)


def _counters(opened: OpenedStream, kept: tuple[Family, ...]) -> CountingThread | None:
    """The thread that corrects the counters that are kept; None without any."""
    if not kept:
        return None
    build = partial(build_counter_loop, opened, kept, canaries(opened.settings))
    return CountingThread(build, opened.metrics)


def _prepare_topics(settings: Settings, watcher: Watcher) -> None:
    """Create our own topics. Raises `Misconfigured` without that of the agents."""
    watcher.create(own_topics(settings.kafka))
    agents = settings.kafka.topic_prefix
    if watcher.missing([agents]):
        raise Misconfigured(
            f"topic {agents} does not exist: is kafka.topic_prefix that of the agents, and do they"
            " write all events to one topic? `reconcile doctor --fix` makes it (deploy/runbook.md,"
            " *One topic for all tables*)"
        )
