"""The tallies of an installation, put together from its settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from checkpoints.cassandra import CassandraRounds, Store
from checkpoints.lease import Lease
from reconcilers.drift import Evidence
from reconcilers.family import Family
from reconcilers.finding import Finding, State
from reconcilers.model import Micros
from reconcilers.tally import Sum, Tally
from streaming.counters.correct import Correcting, Limits
from streaming.counters.count import Counting
from streaming.counters.counter_row import Owners, Subjects
from streaming.counters.loop import TallyLoop
from streaming.counters.schedule import TallyWatch, Timing
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.nodes import NodesWatch
from streaming.monitoring.report import tell, tell_end
from streaming.pipeline.batches import Batches
from streaming.pipeline.worker import micros
from streaming.settings import Settings
from streaming.steps.parking import Parking
from streaming.tables import CounterTables, Tables, connect


def tally_loop(
    settings: Settings, families: tuple[Family, ...], store: Store, stream: Batches
) -> TallyLoop:
    """The loop for these families of tallies, beside a stream of the messages that they sum up."""
    ports, metrics, tally = stream.ports, stream.metrics, settings.tally
    tables = _tables(settings, stream)
    owners, rounds = Owners(tables), CassandraRounds(store)
    counting = _counting(settings, stream, tables)
    correcting = Correcting(
        tables=tables,
        counting=counting,
        rounds=rounds,
        journal=ports.journal,
        parking=_parking(families, stream),
        clock=micros,
        limits=_limits(settings, stream),
        trouble=_trouble(settings, stream.lease),
        told=partial(_told, metrics),
    )
    watch = TallyWatch(
        tables=tables,
        counting=counting,
        owners=owners,
        rounds=rounds,
        correcting=correcting,
        clock=micros,
        timing=_timing(settings),
        evidence=Evidence(tally.looks, 2 * tally.looks),
        count=partial(_count, metrics),
    )
    return TallyLoop(
        families=families,
        journal=ports.journal,
        watch=watch,
        correcting=correcting,
        parking=correcting.parking,
        subjects=Subjects(families, owners),
        marked=partial(ports.tallies.marked_since, stream.marks_begin()),
        metrics=metrics,
        clock=micros,
    )


def _tables(settings: Settings, stream: Batches) -> CounterTables:
    session, pace = connect(settings.cassandra), settings.tally.rows_per_second
    return CounterTables(session, settings.cassandra, stream.family, pace)


def _truth(settings: Settings, stream: Batches) -> Tables:
    """The truth at the budget of counting, not at that of the stream."""
    slow = {"rows_per_second": settings.tally.rows_per_second}
    paced = settings.cassandra.model_copy(update=slow)
    return Tables(connect(settings.cassandra), paced, stream.family)


def _parking(families: tuple[Family, ...], stream: Batches) -> dict[str, Parking]:
    return {each.name: Parking(each, stream.ports.journal, micros) for each in families}


def _counting(settings: Settings, stream: Batches, tables: CounterTables) -> Counting:
    return Counting(
        family=stream.family,
        lists=tables,
        truth=_truth(settings, stream),
        lineage=stream.ports.lineage,
        tallies=stream.ports.tallies,
        clock=micros,
        width=settings.tally.chunk,
        slack=_micros(settings.stream.delay) // 2,
    )


def _timing(settings: Settings) -> Timing:
    seconds = settings.stream.delay, settings.tally.window, settings.tally.latest
    return Timing(*(_micros(each) for each in seconds))


def _limits(settings: Settings, stream: Batches) -> Limits:
    first = {Sum.COUNT: settings.tally.first_messages, Sum.SIZE: settings.tally.first_octets}
    again, prompt = _micros(settings.repair.report_again), _micros(settings.stream.delay)
    return Limits(settings.repair.attempts, first, again, prompt, stream.observe)


def _micros(seconds: float) -> Micros:
    return round(seconds * 1e6)


def _trouble(settings: Settings, lease: Lease | None) -> Callable[[], str | None]:
    nodes = NodesWatch(connect(settings.cassandra), settings.tally.after_outage)

    def trouble() -> str | None:
        if lease is not None and not lease.holds():
            return "the lease is lost"
        return nodes.trouble()

    return trouble


def _count(metrics: Metrics, tally: Tally, outcome: str) -> None:
    metrics.tally_looks.labels(tally.name, outcome).inc()


def _told(metrics: Metrics, finding: Finding, ended: State | None) -> None:
    if ended is None:
        tell(metrics, finding)
    else:
        tell_end(metrics, finding, ended)
