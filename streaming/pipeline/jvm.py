"""Spark's JVM, whose output becomes lines of our log."""

from __future__ import annotations

import json
import logging
import os
import pwd
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Thread

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from reconcilers.words.errors import Misconfigured, ReconcilerError, SparkDied
from streaming.monitoring.logs import SPARK
from streaming.pipeline.spark_state import STANDALONE
from streaming.settings import SECRET

log = logging.getLogger(SPARK)

LOG4J = Path(__file__).with_name("log4j2.properties")
FILES = {
    "spark.submit.pyFiles": "--py-files",
    "spark.archives": "--archives",
    "spark.jars": "--jars",
}
"""What a JVM serves to executors, or puts on its own class path, only at its start."""
CLASS_PATH = "spark.driver.extraClassPath"
OPTION = re.compile(
    "Invalid (initial|maximum) heap|Unrecognized (VM )?option|NumberFormatException"
)
"""What a JVM, or Spark before it starts one, writes of a wrong option."""
FIRST = 50
"""Lines of the JVM's output that are kept to say why it did not start."""
AT_ITS_END = 10.0
"""Seconds until the output of a JVM that has ended is read."""
LOGGED = '{"level":'
"""The beginning of a line of the JVM's own log; other lines are of programs that it starts."""
OF_WORKER = '{"time": '
"""The beginning of a line of our log (`monitoring.logs`) that a worker on this host has written."""
ALWAYS_WARNED = "WARNING: Using incubator modules"
"""The beginning of a line that Spark's JVM writes at each start, and that needs no action."""


def need_no_host_name() -> None:
    """Let a JVM that this process starts work on a host whose name means no address."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def is_nameless() -> bool:
    """Whether this process's user id has no name, as OpenShift gives one to a container."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return True
    return False


def _without_secrets(conf: SparkConf) -> SparkConf:
    """The options that may be arguments of a process, which every user of the host can read.

    `SparkContext` gives the JVM the others, when it runs.
    """
    return SparkConf(loadDefaults=False).setAll(
        [(name, value) for name, value in conf.getAll() if not SECRET.search(name)]
    )


def _without_login(conf: SparkConf) -> SparkConf:
    """The options without jars, which are on the class path: Spark logs in to look at a file.

    Other files are refused before (`needs.refuse_without_spark`).
    """
    options = dict(conf.getAll())
    jars = options.pop("spark.jars", "").replace(",", os.pathsep)
    options[CLASS_PATH] = os.pathsep.join(filter(None, (options.get(CLASS_PATH), jars)))
    return SparkConf().setAll(list(options.items()))


def _log_in(gateway: JavaGateway) -> None:
    """Log a nameless user in by its number: Hadoop would ask the system for a name, and fail.

    If ``HADOOP_USER_NAME`` is set, that is its name, as for Hadoop's other users.
    """
    name = os.environ.get("HADOOP_USER_NAME", str(os.getuid()))
    users = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(name))


def launch_jvm(conf: SparkConf) -> JavaGateway:
    """Start the JVM with a thread that logs its output; that of `spark-submit` runs already.

    Raises `Misconfigured` if it refuses an option, or runs without one that it must be started
    with; `SparkDied` if it does not start.
    """
    reads, writes = os.pipe()
    output, first = os.fdopen(reads, "rb"), list[str]()
    logging_it = Thread(target=relay, args=(output, first), name="spark-log", daemon=True)
    logging_it.start()
    ended: PySparkRuntimeError | None = None
    try:
        nameless = is_nameless()
        options = _without_secrets(_without_login(conf) if nameless else conf)
        gateway = launch_gateway(options, {"stderr": writes})
        if gateway.proc is None:
            refuse_without_files(gateway, conf)
        if nameless:
            _log_in(gateway)
        return gateway
    except PySparkRuntimeError as failed:
        ended = failed
    finally:
        os.close(writes)  # the JVM has its own
    logging_it.join(AT_ITS_END)
    raise _why(first) from ended


def refuse_without_files(gateway: JavaGateway, conf: SparkConf) -> None:
    """Raise `Misconfigured` if `spark-submit` was not given the files that ``conf`` names."""
    given = gateway.jvm.java.lang.System.getProperty
    for name, option in FILES.items():
        if conf.contains(name) and not given(name):
            raise Misconfigured(f"spark-submit was started without {option} {conf.get(name)}")


def _why(first: Iterable[str]) -> ReconcilerError:
    """Why the JVM ended, by its first lines."""
    refused = next((line for line in first if OPTION.search(line)), None)
    if refused is not None:
        return Misconfigured(f"Spark does not start: {refused} (stream.driver_memory, [spark])")
    return SparkDied("Spark's JVM ended at its start: the log has its output")


def relay(output: Iterable[bytes], first: list[str] | None = None) -> None:
    """Log each line of the JVM and its workers until the last of them ends.

    What a worker logs keeps its logger and level.

    Lines of executors that come and go are kept for `executors.ExecutorWatch`. The first lines are
    added to ``first``.
    """
    for line in output:
        if _is_logged_by_worker(line):
            continue
        level, text, traceback = _parts(line.decode(errors="replace").rstrip())
        if text and not text.startswith(ALWAYS_WARNED) and not STANDALONE.take(text):
            log.log(level, "%s", text, extra={"traceback": traceback})
            if first is not None and len(first) < FIRST:
                first.append(text)


def _is_logged_by_worker(line: bytes) -> bool:
    if not line.startswith(OF_WORKER.encode()):
        return False
    try:
        told = json.loads(line)
        level = logging.getLevelNamesMapping()[told["level"].upper()]
        more = {each: told.get(each) for each in ("finding", "traceback")}
        logging.getLogger(told["logger"]).log(level, "%s", told["message"], extra=more)
    except (ValueError, KeyError, TypeError, AttributeError):  # another program's line
        return False
    return True


def _parts(line: str) -> tuple[int, str, str]:
    """Level, message and traceback: log4j2.properties writes all three, others text alone."""
    if line.startswith(LOGGED):
        with suppress(ValueError, KeyError, TypeError):
            told = json.loads(line)
            level = logging.getLevelNamesMapping().get(told["level"], logging.CRITICAL)
            return level, str(told["message"]), str(told["traceback"])
    return logging.ERROR, line, ""
