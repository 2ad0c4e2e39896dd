"""A real standalone cluster whose executors have our packages, and not the project.

No server is needed: keys are looked at at the fake CQL server. What Spark waits for is looked at
with a clock of the test's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from urllib.parse import urlencode
from urllib.request import urlopen

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deploy.embedded.jars import folder
from deploy.embedded.spark_cluster import SparkCluster
from deploy.embedded.wait import HANG_S, until
from reconcilers.declared.family import bind
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.words.errors import SparkDied, Unreachable
from reconcilers.words.model import Slot
from streaming.pipeline.cores import cores
from streaming.pipeline.executors import EndWithoutExecutors, ExecutorWatch
from streaming.pipeline.needs import refuse_without_spark
from streaming.pipeline.screen_job import ScreenJob
from streaming.pipeline.screen_task import on_workers
from streaming.pipeline.session import spark_session
from streaming.pipeline.spark_state import RunningSpark
from streaming.pipeline.worker import RESULT_SCHEMA, Job, look_task, read_looks
from streaming.settings import Settings
from streaming.tables import schema_of
from streaming.tables.session import open_session
from tests.bench.look_alone import share_of
from tests.builders.mail_rows import fake_tables, lineage_rows, rows_by_table, truth_rows
from tests.builders.screened_mail import screened_mail
from tests.builders.server_looks import no_examiner
from tests.builders.server_screening import screening_at
from tests.fakes.cql_server import serving
from tests.spark_tasks import held
from tests.stack.spark_looks import PACKAGES, connected, places

pytestmark = pytest.mark.stack

KEYSPACE, OWN, ROWS = "mail", "own", 2_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    made = SparkCluster(tmp_path_factory.mktemp("cluster"))
    made.start()
    yield made
    for each in made.workers:
        each.resume()
    made.stop()


@pytest.fixture(scope="module")
def settings(cluster: SparkCluster) -> Settings:
    made = cluster.settings_for(PACKAGES)
    made["stream"] |= {"temp_dir": str(cluster.folder / "temporary"), "jars": str(folder("spark"))}
    return Settings.model_validate(made)


@pytest.fixture(scope="module")
def spark(settings: Settings, quick_spark: None) -> Iterator[SparkSession]:
    """A session with two executors."""
    refuse_without_spark(settings)
    session = spark_session(settings)
    _until_there_are(session, 2)
    yield session
    session.stop()


def _until_there_are(spark: SparkSession, number: int) -> None:
    until(lambda: len(_there(spark)) == number, HANG_S, f"{number} executors are there")


def _there(spark: SparkSession) -> list[str]:
    return sorted(each.host for each in RunningSpark(spark).executors() if each.lost is None)


@contextmanager
def job_that_holds(spark: SparkSession, hold: Path) -> Iterator[list[str]]:
    """A job of two tasks, one of which runs for as long as this is open; then what it returns."""
    hold.touch()
    names, found = [str(hold), "/no such file"], list[str]()
    task = spark.sparkContext.parallelize(names, 2).mapPartitions(held)
    thread = Thread(target=lambda: found.extend(task.collect()))
    thread.start()
    try:
        until(lambda: not thread.is_alive() or _one_is_done(spark), HANG_S, "a task is done")
        assert thread.is_alive(), "the job has failed"
        yield found
    finally:
        hold.unlink()
        thread.join()


def _one_is_done(spark: SparkSession) -> bool:
    return any(each.done == 1 for each in RunningSpark(spark).stages())


def test_executors_have_the_code_that_was_sent_and_nothing_else_of_the_project(
    spark: SparkSession, cluster: SparkCluster
) -> None:
    seen = spark.sparkContext.parallelize(range(2), 2).mapPartitions(places).collect()
    assert cores(spark) == 2
    assert {whole for whole, _, _ in seen} == {False}
    assert all("code.zip" in ours for _, ours, _ in seen)
    assert _there(spark) == [each.host for each in cluster.workers]


def test_its_secret_is_known_to_all_and_no_argument_of_a_process(
    spark: SparkSession, cluster: SparkCluster
) -> None:
    """With another one no executor would be there."""
    arguments = [each for process in Path("/proc").glob("[0-9]*") for each in _words(process)]
    assert any(str(cluster.folder) in each for each in arguments)
    assert [each for each in arguments if cluster.secret in each] == []


def _words(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_text(errors="replace").split("\0")
    except OSError:  # it has ended meanwhile
        return []


def test_the_products_look_finds_the_same_on_executors(
    spark: SparkSession, settings: Settings
) -> None:
    truth = truth_rows(ROWS, 20)
    differs = truth[0] | {"modseq": truth[0]["modseq"] + 1}
    rows = rows_by_table(truth) | lineage_rows(truth) | {"messageidtable": [differs, *truth[1:]]}
    with serving(list(fake_tables(KEYSPACE, OWN, rows))) as port:
        cassandra = {"port": port, "keyspace": KEYSPACE, "own_keyspace": OWN}
        own = Settings.model_validate(settings.model_dump() | {"cassandra": cassandra})
        session = open_session(own.cassandra)
        family = bind(own.families()[0], schema_of(session, KEYSPACE))
        session.cluster.shutdown()
        job = Job(own, family, "suspects", connected, no_examiner)
        keys = spark.createDataFrame(pa.Table.from_batches(share_of(truth)))
        shares = keys.repartition(2, "mailboxid").sortWithinPartitions("mailboxid", "uid")
        looked = shares.mapInArrow(look_task(job.of_tasks(2)), RESULT_SCHEMA)
        found = read_looks(row.result for row in looked.collect())
    assert found.examined == ROWS
    assert [each.slot for each in found.suspects] == [Slot(differs["mailboxid"], 1)]


def test_the_products_screening_finds_the_same_on_executors(
    spark: SparkSession, settings: Settings
) -> None:
    ids, rows = screened_mail(mailboxes=1_500, messages=3, wrong=4)
    with serving(list(fake_tables(KEYSPACE, OWN, rows))) as port:
        cassandra = {"port": port, "keyspace": KEYSPACE, "own_keyspace": OWN}
        own = Settings.model_validate(settings.model_dump() | {"cassandra": cassandra})
        job = ScreenJob(own, own.families()[0], [MAILBOX_COUNTERS], 0, screening_at)
        found = on_workers(spark, lambda: job)(ids)
    assert found.suspected.keys() == set(ids[:4])
    assert found.agree == {MAILBOX_COUNTERS.name: 1_496}


def test_a_stage_that_waits_names_the_host(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "reconciler")
    watch = ExecutorWatch(RunningSpark(spark), asked=2)
    with job_that_holds(spark, tmp_path / "hold"):
        watch.look(0)
        busy = {each.host for each in RunningSpark(spark).executors() if each.tasks}
        watch.look(61)
    (line,) = {each for each in caplog.messages if "a stage" in each}
    assert line == (
        f"a stage of Spark's waits for 61 s for {', '.join(sorted(busy))}: 1 of 2 tasks are done"
    )
    assert len(busy) == 1


def test_a_killed_executor_is_told_with_its_host_and_its_task_is_done_again(
    spark: SparkSession,
    cluster: SparkCluster,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "reconciler")
    watch = ExecutorWatch(RunningSpark(spark), asked=2)
    with job_that_holds(spark, tmp_path / "hold") as found:
        watch.look(0)
        cluster.workers[0].kill_executors()

        def told() -> bool:
            watch.look(1)
            return any("an executor was lost" in line for line in caplog.messages)

        until(told, HANG_S, "the lost executor is told")
    assert sorted(found) == ["/no such file", str(tmp_path / "hold")]
    (line,) = {each for each in caplog.messages if "lost" in each}  # the session watches too
    assert line.startswith(f"an executor was lost, the last on {cluster.workers[0].host}: ")
    _until_there_are(spark, 2)


def test_without_workers_a_stream_ends_and_says_so(
    spark: SparkSession, cluster: SparkCluster
) -> None:
    shown: list[int] = []
    end = EndWithoutExecutors(RunningSpark(spark), shown.append, within=300)
    for each in cluster.workers:
        each.stop()
    _until_there_are(spark, 0)
    end.look(0)
    with pytest.raises(Unreachable, match="Spark has had no executor for 300 s"):
        end.look(300)
    assert shown == [0, 0]
    for each in cluster.workers:
        each.start()
    _until_there_are(spark, 2)


def test_an_application_that_the_master_ends_is_a_spark_that_died(
    spark: SparkSession, cluster: SparkCluster
) -> None:
    """The last of this file: there is no Spark after it."""
    asked = {"id": spark.sparkContext.applicationId, "terminate": "true"}
    with urlopen(f"{cluster.web}/app/kill/", urlencode(asked).encode()) as answer:
        assert answer.status == 200

    until(
        lambda: bool(spark.sparkContext._jsc.sc().isStopped()), HANG_S, "Spark has heard of its end"
    )
    with pytest.raises(SparkDied, match="Spark's master has ended the application"):
        RunningSpark(spark).executors()
