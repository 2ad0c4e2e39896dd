"""Spark's JVM, whose output becomes lines of our log."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from threading import Thread

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from reconcilers.words.errors import SparkDied
from streaming.monitoring.logs import SPARK
from streaming.pipeline.spark_state import STANDALONE

log = logging.getLogger(SPARK)

LOG4J = Path(__file__).with_name("log4j2.properties")
ALWAYS_WARNED = "WARNING: Using incubator modules"
"""The beginning of a line that Spark's JVM writes at each start, and that needs no action."""


def launch_jvm(conf: SparkConf) -> JavaGateway:
    """Start the JVM with a thread that logs its output. Raises `SparkDied` if it does not start."""
    reads, writes = os.pipe()
    output = os.fdopen(reads, "rb")
    Thread(target=relay, args=(output,), name="spark-log", daemon=True).start()
    try:
        return launch_gateway(conf, {"stderr": writes})
    except PySparkRuntimeError as failed:
        raise SparkDied("Spark's JVM ended at its start: the log has its output") from failed
    finally:
        os.close(writes)  # the JVM has its own


def relay(output: Iterable[bytes]) -> None:
    """Log each line of the JVM and its workers until the last of them ends.

    Lines of executors that come and go are kept for `executors.ExecutorWatch`.
    """
    for line in output:
        text = line.decode(errors="replace").rstrip()
        if text and not text.startswith(ALWAYS_WARNED) and not STANDALONE.take(text):
            log.error("%s", text)
