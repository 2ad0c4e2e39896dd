"""The stream's Spark session."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from streaming.pipeline.needs import connector_jars
from streaming.pipeline.temporary import temporary_folder
from streaming.settings import StreamSettings

DEEP_STACKS = "-Xss16m"
"""If a query is stopped in the middle of a batch, Spark matches the error with a regex that
recurses for each character. A shallow stack overflows, and a clean stop looks like a crash."""


def spark_session(settings: StreamSettings) -> SparkSession:
    """A session with the Kafka connector.

    Raises `Misconfigured` if its jars are missing, or no temporary folder can be made.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers use the system's
    temporary = temporary_folder(settings)
    os.environ["SPARK_LOCAL_DIRS"] = str(temporary)
    builder = (
        SparkSession.builder.appName("james-reconciler")
        .master(settings.master)
        .config("spark.jars", ",".join(connector_jars(settings)))
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
        .config("spark.sql.shuffle.partitions", "1")  # for a few dozen rows of ranges
        .config("spark.sql.adaptive.enabled", "false")  # a look keeps its number of shares
        .config("spark.sql.streaming.minBatchesToRetain", "10")
        .config("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")  # disposable files
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "2000")
    )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
