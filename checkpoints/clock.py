"""The clock of the log's times, in µs. Tests replace it."""

import time

from reconcilers.words.model import Micros

HOUR: Micros = 3_600_000_000
MICROS_A_MILLI: Micros = 1_000
"""Spark's times, and stored times of bookmarks, are in ms."""


def now_micros() -> Micros:
    """The time now (µs since the epoch)."""
    return time.time_ns() // 1000


def to_micros(seconds: float) -> Micros:
    """Seconds in µs."""
    return round(seconds * 1e6)


def to_seconds(micros: Micros) -> float:
    """µs in seconds."""
    return micros / 1e6
