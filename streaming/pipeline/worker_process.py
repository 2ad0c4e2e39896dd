"""What each of Spark's Python workers does once: its garbage collector, and its log."""

from __future__ import annotations

import gc
from functools import cache

from streaming.monitoring.logs import configure

COLLECTED_AFTER = (50_000, 5, 1)
"""For `gc.set_threshold`: about 1,000 keys looked at; five times that; twice that again."""


def log_as_driver() -> None:
    """In a worker: write the log as the driver does. Each task calls it first."""
    from pyspark import TaskContext  # here: commands without Spark import this module

    if TaskContext.get() is not None:
        _log_as_json()


@cache
def collect_seldom() -> None:
    """Once a process: freeze all current objects, and collect garbage less often.

    Otherwise Python's collector visits all of them several times in each look. It must still run:
    each answer of the driver refers to itself and its rows, and only the collector frees those.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


@cache
def _log_as_json() -> None:
    """Once a worker: its standard error is the executor's, or on one host the driver's."""
    configure()
