"""Builds the loop that corrects counters from the settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from uuid import UUID

from checkpoints.cassandra import CassandraRounds, CassandraSweeps
from checkpoints.clock import now_micros, to_micros
from checkpoints.lease import time_awake_or_asleep
from checkpoints.losses import Cause
from checkpoints.sweeps import of_systems
from reconcilers.counters.drift import Evidence
from reconcilers.declared.family import Family
from reconcilers.declared.tally import Sum
from reconcilers.limits.breakers import OF_COUNTERS, Breaker, BreakerLimits
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Micros
from streaming.commands.wiring.opened_stream import OpenedStream
from streaming.commands.wiring.trouble import trouble_of
from streaming.commands.wiring.workers import counter_tables, screening, screening_with
from streaming.counters.both_sides import BothSides
from streaming.counters.changed_mailboxes import ChangedMailboxes
from streaming.counters.correct import Corrector
from streaming.counters.correction_breaker import CorrectionBreaker
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_findings import CorrectionLimits, CounterFindings
from streaming.counters.counter_row import CounterRows, Owners
from streaming.counters.live_table import LiveTables
from streaming.counters.look_rules import LookRules
from streaming.counters.loop import TURN, CounterLoop
from streaming.counters.observe import CounterObserver
from streaming.counters.open_messages import OpenMessages
from streaming.counters.ports import FrontierMarks
from streaming.counters.progress import CounterProgress
from streaming.counters.recent_changes import RecentChanges
from streaming.counters.schedule import CounterScheduler
from streaming.counters.screening import Screened, ScreenMailboxes
from streaming.counters.screening_queue import MarkedHours, ScreeningQueue
from streaming.counters.unmarked_changes import LossRules, WatchedTallies
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.report import report_change, report_end
from streaming.pipeline.breakers import BreakerWatch
from streaming.pipeline.screen_job import ScreenJob
from streaming.pipeline.screen_task import ON_WORKERS, on_workers
from streaming.pipeline.session import spark_session
from streaming.settings import Mode, Settings, TallySettings
from streaming.steps.parking import Parking
from streaming.tables import CounterTables, Tables, connect
from streaming.tables.live_tables import uses_of

IN_THREAD = 1_000
"""Mailboxes that the counting thread screens before batches have their turn."""


def build_counter_loop(
    opened: OpenedStream, families: tuple[Family, ...], canaries: FrontierMarks
) -> CounterLoop:
    """The loop for these families of tallies; ``canaries`` gives the marks it waits for."""
    settings, ours = opened.settings, opened.job.connections()
    tables, live = counter_tables(settings, opened.job.family), _live(settings, families)
    owners, rounds = Owners(tables), CassandraRounds(opened.store)
    tallies, limits = _tallies(opened, canaries), _limits(settings, opened.names.mode)
    counting = _counting(opened, tables, tallies)
    trouble, breaker = trouble_of(settings, opened.lease), _breaker(opened)
    findings = _findings(opened, families, limits)
    correcting = Corrector(
        findings=findings,
        tables=tables,
        counting=counting,
        rounds=rounds,
        breaker=breaker,
        trouble=trouble,
        pauses=live.unless_other(ours.pauses.why),
        steady=time_awake_or_asleep,
    )
    recent = RecentChanges(_late_by(settings), time_awake_or_asleep)
    observer = CounterObserver(
        tables, counting, owners, rounds, canaries, now_micros, recent, tallies.heard
    )
    progress = CounterProgress(opened.metrics)
    count = partial(_looked, progress, breaker)
    scheduler = CounterScheduler(
        observer, findings, correcting, now_micros, _rules(settings), count
    )
    counters = CounterRows(families, owners, live.is_kept)
    screen, at_once = _screen(opened, tables, partial(_screen_job, opened, families, live, tallies))
    queue = ScreeningQueue(MarkedHours(ours.tallies.marked_in), now_micros, scheduler.rules)
    changed = ChangedMailboxes(scheduler, counters, queue, screen, at_once, _epoch(opened, live))
    asked = (trouble, breaker.why)
    return CounterLoop(scheduler, changed, counters, findings, asked, progress)


def _live(settings: Settings, families: tuple[Family, ...]) -> LiveTables:
    session, keyspace = connect(settings.cassandra), settings.cassandra.keyspace
    return LiveTables.of(families, partial(uses_of, session, keyspace), time_awake_or_asleep)


def _screen_job(
    opened: OpenedStream, families: Sequence[Family], live: LiveTables, tallies: WatchedTallies
) -> ScreenJob:
    kept = [each for family in families for each in family.tallies if live.is_kept(each)]
    return ScreenJob(opened.settings, opened.job.family, kept, tallies.since, screening)


def _screen(
    opened: OpenedStream, tables: CounterTables, job: Callable[[], ScreenJob]
) -> tuple[ScreenMailboxes, int]:
    """What screens mailboxes: this thread or, on a cluster, workers; and how many at once."""
    if opened.settings.stream.is_local:
        pace = opened.settings.tally.rows_per_second

        def screen(mailboxids: Sequence[UUID]) -> Screened:
            until = time.monotonic() + TURN
            return screening_with(job(), tables, pace).of(mailboxids, until)

        return screen, IN_THREAD
    tables.pace.share(2)  # the workers have the other half
    return on_workers(spark_session(opened.settings), job), ON_WORKERS


def _epoch(opened: OpenedStream, live: LiveTables) -> Callable[[], object]:
    sweeps = CassandraSweeps(opened.store, opened.settings.cassandra.keyspace)
    return lambda: (_swept_at(sweeps, opened.job.family.names), live.kept())


def _swept_at(sweeps: CassandraSweeps, systems: Collection[str]) -> Micros | None:
    its = of_systems(sweeps.all(), systems)
    return max((each.ended_at for each in its if each.ended_at), default=None)


def _findings(
    opened: OpenedStream, families: tuple[Family, ...], limits: CorrectionLimits
) -> CounterFindings:
    journal = opened.job.connections().journal
    return CounterFindings(
        journal=journal,
        parking={each.name: Parking(each, journal, now_micros) for each in families},
        clock=now_micros,
        limits=limits,
        told=partial(_told, opened.metrics),
    )


def _tallies(opened: OpenedStream, canaries: FrontierMarks) -> WatchedTallies:
    """Tallies that detect lost events. A loss found here belongs to no known node."""
    ours, delay = opened.job.connections(), to_micros(opened.settings.stream.delay)
    made = WatchedTallies(
        kept=ours.tallies,
        lineage=ours.lineage,
        frontier=canaries,
        clock=now_micros,
        rules=LossRules(slack=delay // 2, expiries=4 * delay),
        lost=partial(_lost, opened),
    )
    made.begin()
    return made


def _lost(opened: OpenedStream, why: str) -> None:
    opened.end_lineage(why, Cause.COUNT)


def _counting(
    opened: OpenedStream, tables: CounterTables, watched: WatchedTallies
) -> MailboxCounter:
    """Counts mailboxes; reads the truth within the budget of counting, not of the stream."""
    settings, family, ours = opened.settings, opened.job.family, opened.job.connections()
    slow = {"rows_per_second": settings.tally.rows_per_second}
    paced = settings.cassandra.model_copy(update=slow)
    truth = Tables(connect(settings.cassandra), paced, family)
    sides = BothSides(family, tables, truth, ours.lineage, to_micros(settings.stream.delay))
    return MailboxCounter(
        sides=sides,
        tallies=ours.tallies,
        watched=watched,
        clock=now_micros,
        width=settings.tally.chunk,
        open=OpenMessages(sides),
    )


def _rules(settings: Settings) -> LookRules:
    tally = settings.tally
    return LookRules(
        delay=to_micros(settings.stream.delay),
        window=to_micros(tally.window),
        evidence=Evidence(tally.looks, 2 * tally.looks),
        root_lag=to_micros(tally.max_quota_lag),
        latest=to_micros(max(tally.max_update_lag, tally.max_quota_lag)),
    )


def _late_by(settings: Settings) -> float:
    """How long (s) after its change was released a counter may be written; 0 if never."""
    lag = settings.tally.max_update_lag
    return lag if lag > settings.stream.delay else 0.0


def _limits(settings: Settings, mode: Mode) -> CorrectionLimits:
    tally = settings.tally
    most = {
        Sum.COUNT: tally.correction_max_messages,
        Sum.UNSEEN: tally.correction_max_messages,
        Sum.SIZE: tally.correction_max_octets,
    }
    again, prompt = to_micros(settings.repair.recheck_interval), to_micros(settings.stream.delay)
    return CorrectionLimits(
        settings.repair.attempts,
        most,
        again,
        prompt,
        mode is Mode.OBSERVE,
        at_once=max(tally.corrections_per_minute // 4, 1),  # asked for twice a minute
    )


def _breaker(opened: OpenedStream) -> CorrectionBreaker:
    """The breaker of corrections, as the journal has stored it."""
    tally, journal = opened.settings.tally, opened.job.connections().journal
    watch = BreakerWatch(journal, limits_of_corrections(tally), opened.metrics, own=OF_COUNTERS)
    watch.recall()
    again = max(tally.corrections_per_minute // 2, 1)
    return CorrectionBreaker(watch, now_micros, time_awake_or_asleep, again)


def limits_of_corrections(tally: TallySettings) -> BreakerLimits:
    """The limits at which the breaker of corrections opens."""
    return BreakerLimits(
        suspects_per_minute=tally.corrections_per_minute,
        suspect_share=tally.correction_share,
        share_min_keys=tally.share_min_looks,
        opens=Breaker.CORRECTIONS,
        keys="counters",
    )


def _looked(
    progress: CounterProgress, breaker: CorrectionBreaker, tally: str, outcome: str, number: int
) -> None:
    progress.observed(tally, outcome, number)
    breaker.looked(outcome, number)


def _told(metrics: Metrics, finding: Finding, ended: State | None) -> None:
    if ended is None:
        report_change(metrics, finding)
    else:
        report_end(metrics, finding, ended)
