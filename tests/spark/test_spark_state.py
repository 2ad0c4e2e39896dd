"""What a real Spark reports of its stages and its end, and what reaches its workers."""

from pathlib import Path
from threading import Thread

from pyspark.sql import SparkSession

from deploy.embedded.wait import HANG_S, until
from streaming.pipeline.executors import Stage
from streaming.pipeline.spark_state import RunningSpark
from tests.spark.scripts import run_script
from tests.spark_tasks import held

ENDED = """
    import sys
    from pathlib import Path
    from reconcilers.words.errors import SparkDied
    from streaming.monitoring import logs
    from streaming.pipeline.session import spark_session
    from streaming.pipeline.spark_state import RunningSpark
    from streaming.settings import load

    def password(settings):
        return settings.cassandra.password

    logs.configure()
    settings = load(Path(sys.argv[1]), {})
    spark = spark_session(settings)
    print(spark.sparkContext.parallelize([settings], 1).map(password).collect())
    state = RunningSpark(spark)

    def tell(*questions):
        for ask in questions:
            try:
                ask()
            except SparkDied as died:
                print(died)

    spark.sparkContext._jsc.sc().stop()
    tell(state.check, state.executors)
    spark.stop()
    tell(state.executors, state.stages)
"""


def test_a_running_stage_is_seen_and_the_driver_is_no_executor(
    spark: SparkSession, tmp_path: Path
) -> None:
    holds, ended = tmp_path / "holds", list[str]()
    holds.touch()
    state = RunningSpark(spark)
    job = spark.sparkContext.parallelize([str(holds), "/no such file"], 2).mapPartitions(held)
    thread = Thread(target=lambda: ended.extend(job.collect()))
    thread.start()
    try:
        while not (found := state.stages()):
            assert thread.is_alive()
    finally:
        holds.unlink()
        thread.join()
    assert ended == [str(holds), "/no such file"]
    (stage,) = found
    assert stage in {Stage(stage.number, 2, 0), Stage(stage.number, 2, 1)}
    assert not state.executors()
    until(lambda: not state.stages(), HANG_S, "Spark has seen the end of the stage")


def test_an_application_that_has_ended_is_told_and_workers_have_the_password(
    quick_spark: None, tmp_path: Path
) -> None:
    """The password is in no task: on this host workers inherit it with the environment."""
    config = tmp_path / "reconcile.toml"
    config.write_text(
        f'[stream]\njars = ".jars/spark"\ntemp_dir = "{tmp_path / "temporary"}"\n'
        '[cassandra]\npassword = "of the file"\n'
    )
    ended = run_script(ENDED, config)
    assert ended.returncode == 0, ended.stderr
    gone = "Spark's master has ended the application: start again"
    ours = "Spark was stopped by this process"
    assert ended.stdout.splitlines() == ["['of the file']", gone, gone, ours, ours]
