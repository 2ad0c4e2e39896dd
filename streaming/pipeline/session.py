"""The Spark session of the job."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from reconcilers.words.errors import Misconfigured
from streaming.pipeline.temporary import temporary_folder
from streaming.settings import StreamSettings

DEEP_STACKS = "-Xss16m"
"""When a query is stopped in the middle of a batch, Spark matches the batch's error with a regex
that recurses for each character: a shallow stack overflows, and a clean stop looks like a crash."""


def spark_session(settings: StreamSettings) -> SparkSession:
    """A session with the Kafka connector.

    Raises `Misconfigured` when its jars are missing, or no temporary folder can be made.
    """
    folder = settings.jars.resolve()
    jars = ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))
    if not jars:
        raise Misconfigured(f"no jars of Spark's Kafka connector in {folder}: run `make setup`")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers run the system's interpreter
    temporary = temporary_folder(settings)
    os.environ["SPARK_LOCAL_DIRS"] = str(temporary)
    builder = (
        SparkSession.builder.appName("james-reconciler")
        .master(settings.master)
        .config("spark.jars", jars)
        .config("spark.driver.memory", settings.driver_memory)
        .config("spark.driver.extraJavaOptions", f'{DEEP_STACKS} -Djava.io.tmpdir="{temporary}"')
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.speculation", "false")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")  # of the ranges, a few dozen rows
        .config("spark.sql.adaptive.enabled", "false")  # the shares of a look are as asked for
        .config("spark.sql.streaming.minBatchesToRetain", "10")
        .config("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")  # disposable files
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "2000")
    )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
