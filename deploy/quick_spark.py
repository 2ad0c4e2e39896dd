"""Spark's JVM for runs of minutes, as of the demo and the tests: a start costs a third.

`python -m deploy.quick_spark` keeps the classes that a small streaming job loads (Java's class data
sharing). A JVM that is given them maps them into memory, instead of reading, checking and linking
each. It refuses by itself what was kept for another Java or other jars, and then starts as always.
"""

import hashlib
import logging
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from deploy.embedded.jars import JARS, LIGHT_COMPILER, UNVERIFIED, java
from deploy.embedded.process import exclusive

log = logging.getLogger(__name__)

JVM = (*LIGHT_COMPILER, *UNVERIFIED)
CLASSES = JARS / "spark-classes.jsa"
BATCHES = 3
JOB = "from deploy.quick_spark import run_a_job; run_a_job()"


def environment() -> dict[str, str]:
    """What a process needs whose Spark is to start quickly: options for that JVM alone."""
    return _with(f"-XX:SharedArchiveFile={CLASSES}") if CLASSES.exists() else _with()


def _with(*options: str) -> dict[str, str]:
    """Spark takes them apart as a shell would: a folder may have a space in its name."""
    return {"SPARK_SUBMIT_OPTS": shlex.join((*JVM, "-Xlog:cds*=off", *options))}


def keep(classes: Path = CLASSES, job: str = JOB) -> bool:
    """Keep the classes unless those of this Java and these jars are kept. False where it failed.

    Nothing needs them: where they cannot be kept, a warning says why.
    """
    made_of = classes.with_suffix(".sha256")
    with exclusive(classes.with_suffix(".lock")):
        wanted = _inputs()
        if classes.exists() and made_of.exists() and made_of.read_text("ascii") == wanted:
            return True
        log.info("keeping Spark's classes for quicker starts")
        fresh = classes.with_suffix(".new")
        for of_before in (fresh, classes):
            of_before.unlink(missing_ok=True)
        options = _with(f"-XX:ArchiveClassesAtExit={fresh}")
        done = subprocess.run(
            [sys.executable, "-c", job],
            env={**os.environ, **options, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not fresh.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            log.warning("Spark's classes are not kept, it starts more slowly: %s", last[:300])
            return False
        fresh.replace(classes)
        made_of.write_text(wanted, "ascii")
        return True


def _inputs() -> str:
    """A hash of what the JVM compares: which Java, which jars, of when."""
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    parts = [str(Path(java()).resolve()), *(f"{each} {each.stat().st_mtime_ns}" for each in jars)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def run_a_job() -> None:
    """Windows of a stream with a watermark, each handed to tasks in Python, as the product does."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    windows = (
        rows.withColumn("read_at", F.current_timestamp())
        .withWatermark("read_at", "1 second")
        .groupBy(F.window("read_at", "1 second"))
        .agg(F.max("value").alias("last"))
    )

    def batch(closed: DataFrame, _number: int) -> None:
        ends = [row["last"] for row in closed.collect()]
        spark.sparkContext.parallelize(ends or [0], 2).mapPartitions(_as_they_are).collect()

    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            windows.writeStream.option("checkpointLocation", checkpoint)
            .trigger(processingTime="1 second")
            .foreachBatch(batch)
            .start()
        )
        while (query.lastProgress or {"batchId": 0})["batchId"] < BATCHES:
            query.awaitTermination(1)
        query.stop()
    spark.stop()


def _as_they_are(values: Iterable[int]) -> Iterable[int]:
    return values


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    keep()
