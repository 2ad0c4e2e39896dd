"""How much faster two executors work than one, each with a part of a core by quota: ten minutes.

The quotas are those of control groups, so it needs root; the machine's other time is for the fake
server and the driver. It says nothing on a machine that has no time left.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from checkpoints.clock import now_micros
from deploy.embedded.jars import folder
from deploy.embedded.process import processes_of_session
from deploy.embedded.settings_file import Sections
from deploy.embedded.spark_cluster import SparkCluster
from deploy.embedded.wait import HANG_S, until
from reconcilers.declared.family import bind
from streaming.again.on_executors import OnExecutors
from streaming.again.pieces import SweptPiece
from streaming.again.progress import LoggedProgress
from streaming.again.rounds import MOST_ROWS, SweepRounds
from streaming.again.workers import on_workers
from streaming.pipeline.needs import refuse_without_spark
from streaming.pipeline.session import spark_session
from streaming.pipeline.spark_state import RunningSpark
from streaming.pipeline.worker import RESULT_SCHEMA, Job, look_task, read_looks
from streaming.settings import Settings
from streaming.tables import schema_of
from streaming.tables.session import open_session
from tests.bench.look_alone import KEYSPACE, OWN, share_of
from tests.bench.report import publish, table
from tests.bench.stored_scans import scanning, store
from tests.builders.mail_rows import fake_tables, lineage_rows, rows_by_table, truth_rows
from tests.builders.server_looks import no_examiner
from tests.fakes.cql_server import serving
from tests.stack.spark_looks import PACKAGES, connected

QUOTA, ROWS, MAILBOXES, ROUNDS, LEAST = 0.3, 80_000, 400, 3, 1.6
RANGES = 512
GROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD_US = 100_000

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(not GROUPS.is_dir(), reason="needs control groups of CPU time"),
]


@contextmanager
def limited(cluster: SparkCluster) -> Iterator[None]:
    """Each worker, with the executors that it starts from now on, has a quota of its own."""
    groups = [GROUPS / f"bench-{each.host}" for each in cluster.workers]
    try:
        for group, each in zip(groups, cluster.workers, strict=True):
            group.mkdir(exist_ok=True)
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
            (group / "cpu.cfs_quota_us").write_text(str(int(QUOTA * PERIOD_US)), encoding="ascii")
            leader = each.daemon.pid()
            assert leader is not None
            for process in processes_of_session(leader):
                with suppress(ProcessLookupError):  # a shell that has started the JVM, and ended
                    (group / "cgroup.procs").write_text(str(process), encoding="ascii")
        yield
    finally:
        cluster.stop()
        for group in filter(Path.is_dir, groups):
            left = group / "cgroup.procs"
            until(lambda: not left.read_text(encoding="ascii"), HANG_S, "all have ended")  # noqa: B023
            group.rmdir()


@contextmanager
def executors(cluster: SparkCluster, number: int, port: int) -> Iterator[tuple[SparkSession, Job]]:
    """A session with so many executors, and the look that they do at the fake server."""
    made: Sections = cluster.settings_for(PACKAGES)
    made["stream"] |= {"temp_dir": str(cluster.folder / "temporary"), "jars": str(folder("spark"))}
    made["spark"] |= {"spark.cores.max": number}
    made["cassandra"] = {"port": port, "keyspace": KEYSPACE, "own_keyspace": OWN}
    made["cassandra"] |= {"rows_per_second": 100_000_000}
    settings = Settings.model_validate(made)
    refuse_without_spark(settings)
    session = open_session(settings.cassandra)
    family = bind(settings.families()[0], schema_of(session, KEYSPACE))
    session.cluster.shutdown()
    spark = spark_session(settings)
    there = RunningSpark(spark)
    until(lambda: len(there.executors()) == number, 3 * HANG_S, "the executors are there")
    try:
        yield spark, Job(settings, family, "suspects", connected, no_examiner)
    finally:
        spark.stop()


def seconds(keys: DataFrame, job: Job, number: int) -> float:
    """Wall time of one look at all keys, a share for each executor."""
    began = time.monotonic()
    shares = keys.repartition(number, "mailboxid").sortWithinPartitions("mailboxid", "uid")
    looked = shares.mapInArrow(look_task(job.of_tasks(number)), RESULT_SCHEMA)
    assert read_looks(row.result for row in looked.collect()).examined == ROWS
    return time.monotonic() - began


def swept_in(spark: SparkSession, job: Job, file: Path) -> float:
    """Wall time of one sweep of the truth and of the listing, with its scan ahead."""
    rows = Counter[str]()
    rounds = SweepRounds(
        on_workers(spark, OnExecutors(scanning(job, file))),
        LoggedProgress(),
        lambda _seconds: None,
        now_micros,
        MOST_ROWS,
    )
    tables = job.family.truth.table, job.family.listing.table

    def take(good: Sequence[SweptPiece]) -> None:
        for each in good:
            assert each.differ == 0
            rows[each.piece.table] += each.rows

    began = time.monotonic()
    rounds.read_ahead(tables[1], RANGES, tables[0])
    for each in tables:
        rounds.read({each: range(RANGES)}, RANGES, take, lambda _table: None)
    assert rows == dict.fromkeys(tables, ROWS)
    return time.monotonic() - began


def test_two_executors_look_and_sweep_faster_than_one(tmp_path: Path) -> None:
    truth = truth_rows(ROWS, MAILBOXES)
    keys_in, rows_in = tmp_path / "keys.parquet", tmp_path / "rows"
    pq.write_table(pa.Table.from_batches(share_of(truth)), keys_in)
    tables = list(fake_tables(KEYSPACE, OWN, rows_by_table(truth) | lineage_rows(truth)))
    looks, sweeps = dict[int, list[float]](), dict[int, list[float]]()
    with serving(tables) as port:
        cluster = SparkCluster(tmp_path / "cluster")
        cluster.start()
        with limited(cluster):
            for number in (1, 2):
                with executors(cluster, number, port) as (spark, job):
                    if not rows_in.exists():
                        store(rows_in, job.family, tables)
                    keys = spark.read.parquet(str(keys_in))
                    looks[number] = rounds_of(partial(seconds, keys, job, number))
                    sweeps[number] = rounds_of(partial(swept_in, spark, job, rows_in))
    told = [(name, *compared(each)) for name, each in (("a look", looks), ("a sweep", sweeps))]
    publish(
        "Two executors against one",
        f"Wall time, s, of one look at {2 * ROWS:,} keys of {MAILBOXES} mailboxes, and of one sweep"
        f" of their {ROWS:,} messages, on a standalone cluster; each executor has {QUOTA:g} of a"
        " core, by quota; a fake server, the sweep's pages from a file. Median of"
        f" {ROUNDS}, after as many to warm up. The test asks for {LEAST:g} times.",
        table(("", "one", "two", "times"), told),
    )
    assert [each for each in told if each[-1] < LEAST] == []


def rounds_of(measured: Callable[[], float]) -> list[float]:
    """Some rounds; before them as many that do not count, as code is compiled within the quota."""
    return [measured() for _ in range(2 * ROUNDS)][ROUNDS:]


def compared(found: dict[int, list[float]]) -> tuple[float, float, float]:
    """The medians of one executor and of two, and how many times as fast these are."""
    one, two = (statistics.median(found[number]) for number in (1, 2))
    return round(one, 1), round(two, 1), round(one / two, 2)
