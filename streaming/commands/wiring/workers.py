"""Builds what a Spark worker uses: its connections, and the examiners of suspects.

A `Job` sends these functions to the workers by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

from checkpoints.cassandra import (
    CassandraExpiries,
    CassandraGenerations,
    CassandraJournal,
    CassandraLineage,
    CassandraLostRows,
    CassandraPauses,
    CassandraRawLineage,
    CassandraTallies,
    RawReads,
)
from checkpoints.clock import now_micros, to_micros
from checkpoints.journal import Journal
from checkpoints.no_lineage import NoLineage
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, Projection, bind
from reconcilers.declared.raw import raw_shape
from reconcilers.declared.scan import scans_of
from reconcilers.rows.finding import Attempts
from reconcilers.words.model import Kind
from streaming.again.past import PastRows
from streaming.commands.wiring.used_tables import used
from streaming.counters.screening import Screening
from streaming.monitoring.clocks import ClockWatch
from streaming.pipeline.behind import longest_age_of
from streaming.pipeline.screen_job import ScreenJob
from streaming.pipeline.worker import Connections, Job
from streaming.settings import CassandraSettings, Settings
from streaming.steps.accepted_together import AcceptedTogether
from streaming.steps.confirm import Confirmer
from streaming.steps.contents import Contents
from streaming.steps.examine import Examiner, Rules
from streaming.steps.glance import Glance
from streaming.steps.own_keyspace import OwnKeyspace
from streaming.steps.pauses import PauseWatch
from streaming.tables import (
    ContentTables,
    CounterTables,
    MailboxOwners,
    Nodes,
    Tables,
    UndecodedScans,
    UndecodedTables,
    connect,
    levels_of,
    schema_of,
    store_of,
)
from streaming.tables.rate_limit import RateLimiter
from streaming.tables.server_load import watch


def job(settings: Settings, family: Family, suspects_topic: str) -> Job:
    """The job of one family, over Cassandra."""
    return Job(settings, family, suspects_topic, connections, examiner)


def job_of(settings: Settings, family: Family, suspects_topic: str) -> Job:
    """The job of a family's stream: one beside that of messages has a longer window."""
    if family.name != MESSAGE.name:
        settings = settings.model_copy(update={"stream": settings.stream.seldom})
    return job(settings, family, suspects_topic)


def compared_of(settings: Settings, families: Iterable[Family]) -> tuple[Family, ...]:
    """The families that are compared, bound to the schema. Raises `Misconfigured`."""
    schema = schema_of(connect(settings.cassandra), settings.cassandra.keyspace)
    return used(settings, tuple(bind(each, schema) for each in families))


def connections(settings: Settings, family: Family) -> Connections:
    """The connections of this process for this family; cached."""
    return _connections(settings, _ByName(family))


MOST_ROWS = 50_000
"""Rows of the listing that screening has in memory: some 30 MB."""


@dataclass(frozen=True, slots=True)
class _ByName:
    """A family as a cache key: its name and columns, since its functions do not compare."""

    family: Family

    def __hash__(self) -> int:
        columns = self.family.listing.columns
        return hash((self.family.name, len(self.family.projections), columns))


@cache
def _connections(settings: Settings, of: _ByName) -> Connections:
    session = connect(settings.cassandra)
    store = store_of(session, settings.cassandra)
    tables = Tables(session, settings.cassandra, of.family)
    return Connections(
        tables,
        CassandraLineage(store, of.family) if of.family.remembered else NoLineage(),
        CassandraJournal(
            store,
            scope=settings.cassandra.keyspace,
            log_kept=timedelta(days=settings.repair.log_days),
        ),
        CassandraExpiries(store, family=of.family),
        CassandraTallies(store, settings.tally.chunk),
        ClockWatch(Nodes(session), settings.stream.delay),
        PauseWatch(
            CassandraPauses(store, settings.cassandra.keyspace),
            now_micros,
            owner=MailboxOwners(session, settings.cassandra).owner,
            keyspace=OwnKeyspace(CassandraGenerations(store, settings.cassandra.keyspace)),
            only_pilot=settings.repair.only_pilot,
        ),
        glance_of(settings, tables, of.family),
        tables.pace.share,
    )


def glance_of(settings: Settings, tables: Tables, family: Family) -> Glance | None:
    """The glance for this family; None if its key does not fit."""
    shape, cassandra = raw_shape(family), settings.cassandra
    if shape is None:
        return None
    reads = _raw_reads(cassandra)
    undecoded = UndecodedTables(reads, cassandra.keyspace, family, shape, tables.pace)
    lineage = CassandraRawLineage(reads, cassandra.own_keyspace, family)
    return Glance(family, shape, undecoded, lineage)


def _raw_reads(cassandra: CassandraSettings) -> RawReads:
    levels, most = levels_of(cassandra), cassandra.partitions_per_read
    return RawReads(connect(cassandra), levels.each, most, watch)


def scans(of: Job) -> UndecodedScans:
    """The full-table scans of this process for a family, at their own pace."""
    found, pace = _scans(of.settings, _ByName(of.family))
    pace.share(of.tasks)
    return found


@cache
def _scans(settings: Settings, of: _ByName) -> tuple[UndecodedScans, RateLimiter]:
    cassandra = settings.cassandra
    reads = _raw_reads(cassandra)
    pace = RateLimiter(settings.sweep.rows_per_second)
    return UndecodedScans(reads, cassandra.keyspace, scans_of(of.family), pace), pace


def screening(of: ScreenJob) -> Screening:
    """What screens mailboxes in this process, at half the pace of counting: the thread has half."""
    tables = _counter_tables(of.settings, _ByName(of.family))
    tables.pace.share(2 * of.tasks)
    return screening_with(of, tables, of.settings.tally.rows_per_second // (2 * of.tasks))


def screening_with(of: ScreenJob, tables: CounterTables, rows_per_second: int) -> Screening:
    """The same with these tables, which read so many rows a second."""
    return Screening(
        tables=tables,
        kept=connections(of.settings, of.family).tallies,
        tallies=of.tallies,
        clock=now_micros,
        width=of.settings.tally.chunk,
        slack=to_micros(of.settings.stream.delay) // 2,
        since=of.since,
        rows=min(MOST_ROWS, rows_per_second),
    )


def counter_tables(settings: Settings, listed: Family) -> CounterTables:
    """Counters and the listing of this family, at the pace of counting."""
    session, pace = connect(settings.cassandra), settings.tally.rows_per_second
    return CounterTables(session, settings.cassandra, listed, pace)


@cache
def _counter_tables(settings: Settings, of: _ByName) -> CounterTables:
    return counter_tables(settings, of.family)


@cache
def _contents(settings: Settings, of: _ByName) -> Contents:
    """Reads content where only that decides a removal; one a process."""
    reads = ContentTables(connect(settings.cassandra), settings.cassandra, of.family.truth)
    truth = _connections(settings, of).tables
    return Contents(of.family, truth, reads, to_micros(settings.stream.delay))


def examiner(of: Job, projection: Projection) -> Examiner:
    """Steps 5 to 7 for one projection, over the connections of this process."""
    ours, rules = of.connections(), rules_of(of.settings)
    return Examiner(
        projection=projection,
        tables=ours.tables,
        confirmation=Confirmer(
            *(of.family, projection, ours.tables, ours.lineage),
            delay=rules.delay,
            contents=_contents(of.settings, _ByName(of.family)),
        ),
        journal=ours.journal,
        publish=of.publish,
        clock=now_micros,
        rules=rules,
        together=None if projection.is_index else _accepted_together(of, ours.journal),
    )


def _accepted_together(of: Job, journal: Journal) -> AcceptedTogether:
    return AcceptedTogether(of.family, journal, _lost_rows(of.settings))


@cache
def _lost_rows(settings: Settings) -> CassandraLostRows:
    """The store of rows that sweeps leave together; one a process."""
    return CassandraLostRows(store_of(connect(settings.cassandra), settings.cassandra))


def past(of: Job) -> PastRows:
    """Tells rows of the past from others in a sweep."""
    return PastRows(
        examiner(of, of.family.listing),
        of.connections().tables,
        _lost_rows(of.settings),
        of.settings.repair.removals_per_minute,
    )


def rules_of(settings: Settings) -> Rules:
    """The rules of steps 5 to 7."""
    repair, delay = settings.repair, to_micros(settings.stream.delay)
    shadowed = frozenset({Kind.SHADOWED_DELETE} if repair.re_add_shadowed else ())
    return Rules(
        delay=delay,
        heard_within=longest_age_of(settings),
        recheck_interval=to_micros(repair.recheck_interval),
        attempts=Attempts(repair.attempts, apart=delay),
        empty_truth_min_rows=repair.empty_truth_min_rows,
        always_accepted=shadowed,
    )
