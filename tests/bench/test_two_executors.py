"""How much faster two executors look than one, each with a part of a core by quota: six minutes.

The quotas are those of control groups, so it needs root; the machine's other time is for the fake
server and the driver. It says nothing on a machine that has no time left.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from deploy.embedded.jars import folder
from deploy.embedded.process import processes_of_session
from deploy.embedded.settings_file import Sections
from deploy.embedded.spark_cluster import SparkCluster
from deploy.embedded.wait import HANG_S, until
from reconcilers.declared.family import bind
from streaming.pipeline.needs import refuse_without_spark
from streaming.pipeline.session import spark_session
from streaming.pipeline.spark_state import RunningSpark
from streaming.pipeline.worker import RESULT_SCHEMA, Job, look_task, read_looks
from streaming.settings import Settings
from streaming.tables import schema_of
from streaming.tables.session import open_session
from tests.bench.look_alone import KEYSPACE, OWN, share_of
from tests.bench.report import publish, table
from tests.builders.mail_rows import fake_tables, lineage_rows, rows_by_table, truth_rows
from tests.builders.server_looks import no_examiner
from tests.fakes.cql_server import serving
from tests.stack.spark_looks import PACKAGES, connected

QUOTA, ROWS, MAILBOXES, ROUNDS, LEAST = 0.3, 80_000, 400, 3, 1.6
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


def test_two_executors_look_faster_than_one(tmp_path: Path) -> None:
    truth = truth_rows(ROWS, MAILBOXES)
    stored, found = tmp_path / "keys.parquet", dict[int, list[float]]()
    pq.write_table(pa.Table.from_batches(share_of(truth)), stored)
    rows = rows_by_table(truth) | lineage_rows(truth)
    with serving(list(fake_tables(KEYSPACE, OWN, rows))) as port:
        cluster = SparkCluster(tmp_path / "cluster")
        cluster.start()
        with limited(cluster):
            for number in (1, 2):
                with executors(cluster, number, port) as (spark, job):
                    keys = spark.read.parquet(str(stored))
                    for _ in range(ROUNDS):  # code is compiled within the quota, too
                        seconds(keys, job, number)
                    found[number] = [seconds(keys, job, number) for _ in range(ROUNDS)]
    one, two = (statistics.median(found[number]) for number in (1, 2))
    publish(
        "Two executors against one",
        f"Wall time, s, of one look at {2 * ROWS:,} keys of {MAILBOXES} mailboxes on a standalone"
        f" cluster; each executor has {QUOTA:g} of a core, by quota; a fake server. Median of"
        f" {ROUNDS}. Two are **{one / two:.2f}** times as fast; the test asks for {LEAST:g}.",
        table(("executors", "s"), [(1, round(one, 1)), (2, round(two, 1))]),
    )
    assert one / two >= LEAST
