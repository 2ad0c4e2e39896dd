"""The counters of an installation, put together from its settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from checkpoints.cassandra import CassandraRounds
from checkpoints.clock import now_micros, to_micros
from checkpoints.lease import Lease, time_awake_or_asleep
from checkpoints.tallies import marks_begin
from reconcilers.drift import Evidence
from reconcilers.family import Family
from reconcilers.finding import Finding, State
from reconcilers.tally import Sum
from streaming.commands.opened import OpenedStream
from streaming.counters.correct import Corrector
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_findings import CorrectionLimits, CounterFindings
from streaming.counters.counter_row import CounterRows, Owners
from streaming.counters.loop import ChangedMailboxes, CounterLoop
from streaming.counters.observe import CounterObserver
from streaming.counters.open_messages import OpenMessages
from streaming.counters.ports import FrontierMarks
from streaming.counters.progress import CounterProgress
from streaming.counters.recent_changes import RecentChanges
from streaming.counters.schedule import CounterScheduler, LookRules
from streaming.counters.whole import WholeMailboxes
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.nodes import NodesWatch
from streaming.monitoring.report import report_change, report_end
from streaming.settings import Mode, Settings
from streaming.steps.parking import Parking
from streaming.tables import CounterTables, Nodes, Tables, connect


def build_counter_loop(
    opened: OpenedStream, families: tuple[Family, ...], canaries: FrontierMarks
) -> CounterLoop:
    """The loop for these families of tallies, beside a stream of the messages that they sum up.

    ``canaries`` tell it what to wait for.
    """
    settings, ours, metrics = opened.settings, opened.job.connections(), opened.metrics
    tables = _tables(settings, opened.job.family)
    owners, rounds = Owners(tables), CassandraRounds(opened.store)
    counting, limits = _counting(opened, tables), _limits(settings, opened.names.mode)
    trouble = _trouble(settings, opened.lease)
    findings = CounterFindings(
        journal=ours.journal,
        parking={each.name: Parking(each, ours.journal, now_micros) for each in families},
        clock=now_micros,
        limits=limits,
        told=partial(_told, metrics),
    )
    correcting = Corrector(
        findings=findings,
        tables=tables,
        counting=counting,
        rounds=rounds,
        clock=now_micros,
        limits=limits,
        trouble=trouble,
        pauses=ours.pauses.why,
        steady=time_awake_or_asleep,
        whole=WholeMailboxes(ours.lineage, to_micros(settings.stream.delay)).covers,
    )
    recent = RecentChanges(_late_by(settings), time_awake_or_asleep)
    observer = CounterObserver(tables, counting, owners, rounds, canaries, now_micros, recent)
    progress = CounterProgress(metrics)
    scheduler = CounterScheduler(
        observer, findings, correcting, now_micros, _rules(settings), progress.observed
    )
    counters = CounterRows(families, owners)
    marked = partial(ours.tallies.marked_since, marks_begin(now_micros()))
    changed = ChangedMailboxes(scheduler, counters, marked)
    return CounterLoop(scheduler, changed, counters, findings, trouble, progress)


def _tables(settings: Settings, listed: Family) -> CounterTables:
    session, pace = connect(settings.cassandra), settings.tally.rows_per_second
    return CounterTables(session, settings.cassandra, listed, pace)


def _counting(opened: OpenedStream, tables: CounterTables) -> MailboxCounter:
    """Reads the truth, too, at the budget of counting, not at that of the stream."""
    settings, family, ours = opened.settings, opened.job.family, opened.job.connections()
    slow = {"rows_per_second": settings.tally.rows_per_second}
    paced = settings.cassandra.model_copy(update=slow)
    truth = Tables(connect(settings.cassandra), paced, family)
    return MailboxCounter(
        family=family,
        lists=tables,
        truth=truth,
        lineage=ours.lineage,
        tallies=ours.tallies,
        clock=now_micros,
        width=settings.tally.chunk,
        slack=to_micros(settings.stream.delay) // 2,
        open=OpenMessages(family, tables, truth, ours.lineage),
    )


def _rules(settings: Settings) -> LookRules:
    tally = settings.tally
    return LookRules(
        delay=to_micros(settings.stream.delay),
        window=to_micros(tally.window),
        evidence=Evidence(tally.looks, 2 * tally.looks),
    )


def _late_by(settings: Settings) -> float:
    """How long (s) after its change has come out a counter may be written: 0 where it never is."""
    lag = settings.tally.max_update_lag
    return lag if lag > settings.stream.delay else 0.0


def _limits(settings: Settings, mode: Mode) -> CorrectionLimits:
    first = {
        Sum.COUNT: settings.tally.first_correction_max_messages,
        Sum.SIZE: settings.tally.first_correction_max_octets,
    }
    again, prompt = to_micros(settings.repair.recheck_interval), to_micros(settings.stream.delay)
    return CorrectionLimits(settings.repair.attempts, first, again, prompt, mode is Mode.OBSERVE)


def _trouble(settings: Settings, lease: Lease | None) -> Callable[[], str | None]:
    nodes = NodesWatch(Nodes(connect(settings.cassandra)), settings.tally.after_outage)

    def trouble() -> str | None:
        if lease is not None and not lease.holds():
            return "the lease is lost"
        return nodes.trouble()

    return trouble


def _told(metrics: Metrics, finding: Finding, ended: State | None) -> None:
    if ended is None:
        report_change(metrics, finding)
    else:
        report_end(metrics, finding, ended)
