"""Builds the sweeper of a family over Cassandra and Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from checkpoints.cassandra import CassandraLostRows, CassandraSweeps, Store
from checkpoints.clock import now_micros, to_micros
from checkpoints.sweeps import SweepRecord
from reconcilers.declared.family import Family
from reconcilers.words.errors import Refused, Retryable
from streaming.again.fingerprints import CarriedFingerprints, KeptFingerprints, as_sorted
from streaming.again.hand_over import HandOver
from streaming.again.mark import Marking, NoMark, SweepMark
from streaming.again.on_executors import OnExecutors
from streaming.again.pauses import WithinHours
from streaming.again.rounds import SweepProgress, SweepRounds, fewest_at, ranges_for
from streaming.again.scan import Scanning
from streaming.again.sieve import Sieve
from streaming.again.sweep import Sweeper
from streaming.again.sweep_result import SweepResult
from streaming.again.together import PastTogether, Systematic, Told
from streaming.again.workers import PieceScans, TasksOf, on_all_cores, on_one_host, on_workers
from streaming.commands.wiring import workers
from streaming.pipeline.session import spark_session
from streaming.pipeline.temporary import temporary_folder
from streaming.pipeline.worker import Job
from streaming.settings import Settings
from streaming.tables import Cluster, connect

log = logging.getLogger("reconciler")

FILES = 512
"""Files for the fingerprints of a table."""


def ranges_of(settings: Settings, family: Family) -> int:
    """The token ranges of each table of a new sweep: the setting, or by Cassandra's estimate."""
    sweep, cassandra = settings.sweep, settings.cassandra
    if sweep.ranges is not None:
        return sweep.ranges
    try:
        cluster = Cluster(connect(cassandra))
        rows = cluster.estimated_partitions(cassandra.keyspace, family.truth.table)
    except (Refused, Retryable) as failed:
        log.warning("a sweep has %s ranges a table: no estimate of its size: %s", FILES, failed)
        rows = 0
    return ranges_for(rows, sweep.rows_per_second)


def lease_of(settings: Settings) -> str:
    """The lease that lets one sweep at a time go through a keyspace."""
    return f"{settings.cassandra.keyspace}/sweep"


def all_sweeps(settings: Settings, store: Store) -> tuple[SweepRecord, ...]:
    """Every sweep of this installation, newest first."""
    return CassandraSweeps(store, settings.cassandra.keyspace).all()


def told_of(family: Family, found: SweepResult) -> list[str]:
    """The result of a family's sweep, line by line."""
    seen = f"{found.rows} rows were compared, {found.suspects} suspects found"
    unread = (
        f"not read: {table}, tokens {of.after} to {of.until}: {why}"
        for table, of, why in found.unread
    )
    return [f"{family.name}: {seen}", *found.systematic, *unread, found.whole]


@contextmanager
def sweeper(
    job: Job,
    store: Store,
    sink: HandOver,
    progress: SweepProgress,
    wait: Callable[[float], None],
    tasks: TasksOf = on_all_cores,
) -> Iterator[Sweeper]:
    """A sweeper with at most as many tasks as ``tasks`` returns for Spark's cores.

    It reads within the hours of the settings.
    """
    settings = job.settings
    if settings.sweep.hours is not None:
        wait = WithinHours(settings.sweep.hours, wait, progress.waiting)
    with _scans(job) as scans:
        yield Sweeper(
            family=job.family,
            sweeps=CassandraSweeps(store, settings.cassandra.keyspace),
            mark=_mark(job),
            sieve=_sieve(job, store, sink),
            rounds=SweepRounds(
                on_workers(spark_session(settings), scans, tasks),
                progress,
                wait,
                now_micros,
                fewest_at(settings.sweep.rows_per_second),
            ),
        )


@contextmanager
def _scans(job: Job) -> Iterator[PieceScans]:
    """How pieces are scanned, and where their 16 bytes a message are kept meanwhile.

    On one host in a temporary folder, which is removed; on a cluster on the executors' disks.
    """
    stream = job.settings.stream
    if not stream.is_local:
        none = CarriedFingerprints(1, as_sorted(b""))
        yield OnExecutors(Scanning(job, workers.scans, workers.past, none, none))
        return
    folder = temporary_folder(stream)
    with TemporaryDirectory(prefix="sweep-", dir=folder, ignore_cleanup_errors=True) as made:
        kept = [_kept(Path(made), each) for each in ("expected", "compared")]
        yield on_one_host(Scanning(job, workers.scans, workers.past, *kept))


def _mark(job: Job) -> Marking:
    if not job.family.remembered:
        return NoMark()
    return SweepMark(job.connections().lineage, to_micros(job.settings.stream.delay))


def _sieve(job: Job, store: Store, sink: HandOver) -> Sieve:
    told = Told(job.family, job.connections().journal, now_micros)
    few = job.settings.repair.removals_per_minute
    past = PastTogether(told, CassandraLostRows(store), few)
    return Sieve(job.family, sink, Systematic(told), past)


def _kept(folder: Path, name: str) -> KeptFingerprints:
    (folder / name).mkdir()
    return KeptFingerprints(folder / name, FILES)
