"""The clock that stands behind the log's times, and its one unit: µs. Replaced in tests."""

import time

from reconcilers.words.model import Micros

HOUR: Micros = 3_600_000_000
MICROS_A_MILLI: Micros = 1_000
"""Spark's times, and those of bookmarks where they are kept, are ms."""


def now_micros() -> Micros:
    """Now (µs since the epoch)."""
    return time.time_ns() // 1000


def to_micros(seconds: float) -> Micros:
    """Seconds, as people and libraries give them, in µs."""
    return round(seconds * 1e6)


def to_seconds(micros: Micros) -> float:
    """µs in seconds, as people, metrics and libraries want them."""
    return micros / 1e6
