"""Spark's errors: which come from a worker, and which line of them says what happened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from reconcilers.words.errors import ReconcilerError, SparkDied

OURS = ReconcilerError.__module__
"""The module of our errors, as Python's tracebacks name it."""
_OURS = re.escape(OURS)
WORKERS_ERROR = re.compile("Python worker|PythonException|ExecutorLostFailure")
"""How Spark names an error in a look or a repair, or the end of its worker process. Errors of Kafka
and of a query's end do not match."""
TOO_FEW_REPLICAS = re.compile(rf"{_OURS}\.Overloaded: .*\bUnavailable\b")
REFUSED = re.compile(rf"{_OURS}\.Refused: ")
"""A look turns a refused key into a finding; an error that comes this far is a refusing table."""
OF_SERVERS = re.compile(
    rf"{_OURS}\.(Unreachable|Overloaded|ReadFailed|Refused)\b|kafka\.\w*\.?errors?\."
)
STOPPED = re.compile(r"stopped SparkContext|LiveListenerBus is stopped|SparkContext was shut down")
"""How Spark names that its context has ended: on a cluster the master can end it, and the JVM
lives."""
_PYTHONS_ERROR = re.compile(r"[A-Za-z_.]+(Error|Exception): ")


def is_of_a_record(told: str) -> bool:
    """Whether the records that were looked at may have caused the error.

    Not if nodes are down, nor if a table refuses until a person acts.
    """
    of_servers = TOO_FEW_REPLICAS.search(told) or REFUSED.search(told)
    return bool(WORKERS_ERROR.search(told)) and not of_servers


def is_of_servers(cause: str) -> bool:
    """Whether a server was away or refused: a new process would fail in the same way."""
    return OF_SERVERS.search(cause) is not None


def cause_of(told: str) -> str:
    """The line of an error that says what happened: ours, else Spark's, else Python's."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith((f"{OURS}.", "kafka.errors."))]
    sparks = [line for line in lines if line.startswith((": org.apache.spark", "Caused by: "))]
    pythons = [line for line in lines if _PYTHONS_ERROR.match(line)]
    cause = (ours[-1:] or sparks[:1] or pythons[-1:] or lines[:1] or ["no reason given"])[0]
    return cause.removeprefix(": ")[:500]


@contextmanager
def job_of(by_worker: type[ReconcilerError]) -> Iterator[None]:
    """Raise ``by_worker`` if a worker of a job fails, else `SparkDied`."""
    try:
        with spark_there():
            yield
    except (Py4JJavaError, PySparkException) as failed:
        told = str(failed)
        raise (by_worker if WORKERS_ERROR.search(told) else SparkDied)(cause_of(told)) from failed


@contextmanager
def spark_there() -> Iterator[None]:
    """Raise `SparkDied` if Spark has ended, or its JVM does not answer. Other errors stay.

    A JVM that ends removes its temporary files while PySpark uses them.
    """
    try:
        yield
    except Py4JJavaError as failed:
        if STOPPED.search(str(failed)):
            raise SparkDied("Spark's master has ended the application: start again") from failed
        raise
    except (Py4JError, OSError, EOFError) as gone:
        why = getattr(gone, "strerror", None) or type(gone).__name__
        raise SparkDied(f"Spark's JVM is gone ({why}): start again") from gone
