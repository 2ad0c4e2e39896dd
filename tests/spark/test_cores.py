"""How a session shares its cores: tasks, pools, and options that Spark refuses."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from streaming.pipeline.cores import Pool, cores, shares, use_pool
from streaming.settings import StreamSettings
from tests.spark.scripts import run_script

WRONG = """
    import sys
    from pathlib import Path
    from reconcilers.words.errors import Misconfigured
    from streaming.pipeline.session import spark_session
    from streaming.settings import load

    try:
        spark_session(load(Path(sys.argv[1]), {}))
    except Misconfigured as refused:
        print(refused)
"""


def _pool(_: object) -> Iterator[str]:
    context = TaskContext.get()
    assert context is not None
    yield str(context.getLocalProperty("spark.scheduler.pool"))


def pool_of(spark: SparkSession) -> str:
    """The pool in which a job of this thread runs."""
    (pool,) = spark.sparkContext.parallelize([1], 1).mapPartitions(_pool).collect()
    return str(pool)


def test_looks_are_shared_by_sparks_cores_or_by_the_setting(spark: SparkSession) -> None:
    assert shares(spark, StreamSettings()) == cores(spark) == 1
    assert shares(spark, StreamSettings(shuffle_partitions=7)) == 7


def test_a_sweep_has_a_pool_beside_that_of_the_streams_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A batch runs in a thread of Spark's, with the pool of the thread that started its query."""
    seen: dict[str, str] = {}

    def batch(_rows: DataFrame, _number: int) -> None:
        seen["batch"] = pool_of(spark)

    def stream() -> None:
        use_pool(spark, Pool.STREAM)
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        places = rows.writeStream.option("checkpointLocation", str(tmp_path))
        places.foreachBatch(batch).trigger(availableNow=True).start().awaitTermination()

    def sweep() -> None:
        use_pool(spark, Pool.SWEEP)
        seen["sweep"] = pool_of(spark)

    threads = [Thread(target=stream), Thread(target=sweep)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert seen == {"batch": "stream", "sweep": "sweep"}


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ('"spark.network.timeoutInterval" = "500s"', "spark.network.timeoutInterval"),
        ('"spark.driver.port" = "many"', "spark.driver.port"),
        ('"spark.driver.memory" = "lots"', "lots"),
    ],
)
def test_an_option_that_spark_refuses_is_one_line(
    quick_spark: None, tmp_path: Path, option: str, says: str
) -> None:
    config = tmp_path / "reconcile.toml"
    stream = f'jars = ".jars/spark"\ntemp_dir = "{tmp_path / "temporary"}"'
    config.write_text(f"[stream]\n{stream}\n[spark]\n{option}\n")
    ended = run_script(WRONG, config)
    (line,) = ended.stdout.splitlines()
    assert ended.returncode == 0, ended.stderr
    assert line.startswith("Spark does not start: ")
    assert says in line
