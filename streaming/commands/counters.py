"""The tallies of an installation, put together from its settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from checkpoints.cassandra import CassandraRounds, Store
from checkpoints.clock import now_micros
from checkpoints.lease import Lease
from reconcilers.drift import Evidence
from reconcilers.family import Family
from reconcilers.finding import Finding, State
from reconcilers.model import Micros
from reconcilers.tally import Sum, Tally
from streaming.counters.correct import CorrectionLimits, Corrector
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_row import CounterRows, Owners
from streaming.counters.loop import CounterLoop
from streaming.counters.schedule import CounterScheduler, Timing
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.nodes import NodesWatch
from streaming.monitoring.report import report_change, report_end
from streaming.pipeline.batches import Batches
from streaming.settings import Settings
from streaming.steps.parking import Parking
from streaming.tables import CounterTables, Tables, connect


def build_counter_loop(
    settings: Settings, families: tuple[Family, ...], store: Store, stream: Batches
) -> CounterLoop:
    """The loop for these families of tallies, beside a stream of the messages that they sum up."""
    ports, metrics, tally = stream.ports, stream.metrics, settings.tally
    tables = _tables(settings, stream)
    owners, rounds = Owners(tables), CassandraRounds(store)
    counting = _counting(settings, stream, tables)
    correcting = Corrector(
        tables=tables,
        counting=counting,
        rounds=rounds,
        journal=ports.journal,
        parking=_parking(families, stream),
        clock=now_micros,
        limits=_limits(settings, stream),
        trouble=_trouble(settings, stream.lease),
        told=partial(_told, metrics),
    )
    watch = CounterScheduler(
        tables=tables,
        counting=counting,
        owners=owners,
        rounds=rounds,
        correcting=correcting,
        clock=now_micros,
        timing=_timing(settings),
        evidence=Evidence(tally.looks, 2 * tally.looks),
        count=partial(_count, metrics),
    )
    return CounterLoop(
        families=families,
        journal=ports.journal,
        scheduler=watch,
        correcting=correcting,
        parking=correcting.parking,
        counters=CounterRows(families, owners),
        marked=partial(ports.tallies.marked_since, stream.marks_begin()),
        metrics=metrics,
        clock=now_micros,
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
    return {each.name: Parking(each, stream.ports.journal, now_micros) for each in families}


def _counting(settings: Settings, stream: Batches, tables: CounterTables) -> MailboxCounter:
    return MailboxCounter(
        family=stream.family,
        lists=tables,
        truth=_truth(settings, stream),
        lineage=stream.ports.lineage,
        tallies=stream.ports.tallies,
        clock=now_micros,
        width=settings.tally.chunk,
        slack=_micros(settings.stream.delay) // 2,
    )


def _timing(settings: Settings) -> Timing:
    seconds = settings.stream.delay, settings.tally.window, settings.tally.max_update_lag
    return Timing(*(_micros(each) for each in seconds))


def _limits(settings: Settings, stream: Batches) -> CorrectionLimits:
    first = {
        Sum.COUNT: settings.tally.first_correction_max_messages,
        Sum.SIZE: settings.tally.first_correction_max_octets,
    }
    again, prompt = _micros(settings.repair.recheck_interval), _micros(settings.stream.delay)
    return CorrectionLimits(settings.repair.attempts, first, again, prompt, stream.observe)


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
        report_change(metrics, finding)
    else:
        report_end(metrics, finding, ended)
