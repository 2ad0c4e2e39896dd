"""The stream's Spark session."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread, current_thread, main_thread

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from reconcilers.words.errors import Misconfigured, Unreachable
from streaming.pipeline.executors import ExecutorWatch, asked_for
from streaming.pipeline.jvm import LOG4J, is_nameless, launch_jvm, need_no_host_name
from streaming.pipeline.needs import brings_jars, connector_jars
from streaming.pipeline.spark_errors import STOPPED, spark_there
from streaming.pipeline.spark_state import RunningSpark
from streaming.pipeline.temporary import temporary_folder
from streaming.settings import (
    FIXED,
    INTERPRETER,
    KAFKA_PASSWORD,
    PASSWORD,
    Settings,
    StreamSettings,
    is_one_host,
)

DEEP_STACKS = "-Xss16m"
"""If a query is stopped in the middle of a batch, Spark matches the error with a regex that
recurses for each character. A shallow stack overflows, and a clean stop looks like a crash."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
OURS = {
    "spark.app.name": "james-reconciler",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",  # disposable files
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
}
ON_THIS_HOST = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
ON_A_CLUSTER = {
    "spark.network.timeout": "45s",
    "spark.network.timeoutInterval": "15s",
    "spark.executor.heartbeatInterval": "5s",
    "spark.shuffle.io.maxRetries": "2",
    "spark.shuffle.io.retryWait": "2s",
}
"""With Spark's own times an executor that hangs stops the stream for minutes (docs/cluster.md)."""
OPTION = re.compile("IllegalArgument|NumberFormat|BindException|UnknownHost")
"""Errors of a wrong option or name; others are of a cluster that does not answer."""
ONE_STARTS = Lock()
"""A sweep or replay with a stream of its own needs a session in two threads at once."""


def spark_session(settings: Settings) -> SparkSession:
    """A session with the Kafka connector; the one of this process, if it has one.

    Raises `Misconfigured` if its jars are missing, if no temporary folder can be made, or if Spark
    refuses an option; `Unreachable` if its master does not answer; `SparkDied` if the JVM does not
    start. On a cluster a thread logs what Spark waits for.
    """
    conf = SparkConf()
    conf.setAll(list(options_of(settings).items()))
    _set_environment(settings)
    with ONE_STARTS, _signals_kept(), spark_there(), _taken_by(settings.stream):
        first = SparkContext._active_spark_context is None  # noqa: SLF001 (no public way to ask)
        if first:
            SparkContext(conf=conf, gateway=launch_jvm(conf))
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
    if first and not settings.stream.is_local:
        asked = asked_for(settings.stream.master, dict(settings.spark))
        watch = ExecutorWatch(RunningSpark(spark), asked)
        Thread(target=watch.run, args=(Event(),), name="executors", daemon=True).start()
    return spark


def options_of(settings: Settings) -> dict[str, str]:
    """The options of Spark, by name: ours, those of ``[spark]`` over them, and the fixed ones.

    Raises `Misconfigured` if there are no jars, or no temporary folder can be made.
    """
    given = dict(settings.spark)
    java = " ".join(filter(None, (_java(settings), given.get(JAVA_OPTIONS))))
    times = {} if settings.stream.is_local else ON_A_CLUSTER
    address = ON_THIS_HOST if is_one_host(settings.stream.master) else {}
    jars = {} if brings_jars(settings) else {"spark.jars": ",".join(connector_jars(settings))}
    memory = {"spark.driver.memory": settings.stream.driver_memory}
    master = {"spark.master": settings.stream.master}
    return {
        **OURS,
        **times,
        **address,
        **jars,
        **memory,
        **given,
        **FIXED,
        **master,
        JAVA_OPTIONS: java,
    }


def _java(settings: Settings) -> str:
    """Options of the driver's JVM."""
    temporary = temporary_folder(settings.stream)
    home = f' -Duser.home="{temporary}"' if is_nameless() else ""  # Java reports "?"
    return (
        f'{DEEP_STACKS} -Djava.io.tmpdir="{temporary}"{home} -Dlog4j2.configurationFile="{LOG4J}"'
    )


def _set_environment(settings: Settings) -> None:
    """Set what the JVM and, on this host, its workers inherit from this process."""
    temporary = str(temporary_folder(settings.stream))
    os.environ["SPARK_LOCAL_DIRS"] = os.environ["TMPDIR"] = tempfile.tempdir = temporary
    interpreter = dict(settings.spark).get(INTERPRETER)
    for name, section in ((PASSWORD, settings.cassandra), (KAFKA_PASSWORD, settings.kafka)):
        if section.password is not None:
            os.environ[name] = section.password
    if settings.stream.is_local:
        os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers use the system's
        need_no_host_name()
    elif interpreter is not None:
        os.environ["PYSPARK_PYTHON"] = interpreter  # Spark reads it of spark-submit only


@contextmanager
def _taken_by(stream: StreamSettings) -> Iterator[None]:
    """Raise why Spark does not start: `Misconfigured`, or `Unreachable` of a master."""
    try:
        yield
    except Py4JJavaError as failed:
        told = str(failed.java_exception).partition("\n")[0]
        if stream.is_local or OPTION.search(told):
            raise Misconfigured(
                f"Spark does not start: {told} (stream.master, [spark])"
            ) from failed
        if STOPPED.search(told):
            told = "it does not answer, or has ended the application"
        raise Unreachable(f"Spark's master {stream.master}: {told}") from failed


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep the handler of SIGINT, which PySpark replaces when Spark starts in the main thread."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if current_thread() is main_thread():
            signal.signal(signal.SIGINT, handler)
