"""What Spark tells of an error: which are those of a worker, and which line says what happened."""

from __future__ import annotations

import re

from reconcilers.words.errors import ReconcilerError

OURS = ReconcilerError.__module__
"""As Python names our errors."""
_OURS = re.escape(OURS)
WORKERS_ERROR = re.compile("Python worker|PythonException|ExecutorLostFailure")
"""Spark's words for an error in a look or a repair, or the end of the process that made it; not for
one of Kafka, or a query's end."""
TOO_FEW_REPLICAS = re.compile(rf"{_OURS}\.Overloaded: .*\bUnavailable\b")
REFUSED = re.compile(rf"{_OURS}\.Refused: ")
"""Of a key that is refused a look makes a finding: what comes this far, a table refuses."""
OF_SERVERS = re.compile(
    rf"{_OURS}\.(Unreachable|Overloaded|ReadFailed|Refused)\b|kafka\.\w*\.?errors?\."
)
_PYTHONS_ERROR = re.compile(r"[A-Za-z_.]+(Error|Exception): ")


def is_of_a_record(told: str) -> bool:
    """Whether the records that were looked at may be to blame.

    Not where nodes are away, nor where a table refuses until a person acts.
    """
    of_servers = TOO_FEW_REPLICAS.search(told) or REFUSED.search(told)
    return bool(WORKERS_ERROR.search(told)) and not of_servers


def is_of_servers(cause: str) -> bool:
    """Whether a server was away, or refused: a new process would meet the same."""
    return OF_SERVERS.search(cause) is not None


def cause_of(told: str) -> str:
    """The line of an error that says what happened: of ours, else Spark's, else Python's."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith((f"{OURS}.", "kafka.errors."))]
    sparks = [line for line in lines if line.startswith((": org.apache.spark", "Caused by: "))]
    pythons = [line for line in lines if _PYTHONS_ERROR.match(line)]
    return (ours[-1:] or sparks[:1] or pythons[-1:] or lines[:1] or ["no reason given"])[0][:500]
