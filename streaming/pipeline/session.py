"""The stream's Spark session."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, current_thread, main_thread

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from streaming.pipeline.jvm import LOG4J, launch_jvm
from streaming.pipeline.needs import connector_jars
from streaming.pipeline.spark_errors import spark_there
from streaming.pipeline.temporary import temporary_folder
from streaming.settings import StreamSettings

DEEP_STACKS = "-Xss16m"
"""If a query is stopped in the middle of a batch, Spark matches the error with a regex that
recurses for each character. A shallow stack overflows, and a clean stop looks like a crash."""


ONE_STARTS = Lock()
"""A sweep or replay with a stream of its own needs a session in two threads at once."""


def spark_session(settings: StreamSettings) -> SparkSession:
    """A session with the Kafka connector; the one of this process, if it has one.

    Raises `Misconfigured` if its jars are missing, or no temporary folder can be made, `SparkDied`
    if the JVM does not start.
    """
    conf = _conf(settings)
    with ONE_STARTS:
        if SparkContext._active_spark_context is None:  # noqa: SLF001 (no public way to ask)
            with _signals_kept(), spark_there():
                SparkContext(conf=conf, gateway=launch_jvm(conf))
    return SparkSession.builder.config(conf=conf).getOrCreate()


def _conf(settings: StreamSettings) -> SparkConf:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers use the system's
    temporary = temporary_folder(settings)
    os.environ["SPARK_LOCAL_DIRS"] = str(temporary)
    java = f'{DEEP_STACKS} -Djava.io.tmpdir="{temporary}" -Dlog4j2.configurationFile="{LOG4J}"'
    return (
        SparkConf()
        .setAppName("james-reconciler")
        .setMaster(settings.master)
        .set("spark.jars", ",".join(connector_jars(settings)))
        .set("spark.driver.memory", settings.driver_memory)
        .set("spark.driver.extraJavaOptions", java)
        .set("spark.driver.bindAddress", "127.0.0.1")
        .set("spark.driver.host", "127.0.0.1")
        .set("spark.ui.enabled", "false")
        .set("spark.ui.showConsoleProgress", "false")
        .set("spark.speculation", "false")
        .set("spark.scheduler.mode", "FAIR")
        .set("spark.sql.session.timeZone", "UTC")
        .set("spark.sql.shuffle.partitions", "1")  # for a few dozen rows of ranges
        .set("spark.sql.adaptive.enabled", "false")  # a look keeps its number of shares
        .set("spark.sql.streaming.minBatchesToRetain", "10")
        .set("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")  # disposable files
        .set("spark.sql.execution.arrow.maxRecordsPerBatch", "2000")
    )


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep the handler of SIGINT, which PySpark replaces when Spark starts in the main thread."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if current_thread() is main_thread():
            signal.signal(signal.SIGINT, handler)
