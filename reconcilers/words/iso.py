"""Times for people: ISO 8601 in UTC, to the second. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from reconcilers.words.model import Micros


def iso(at: Micros) -> str:
    """The text of a time in µs since the epoch."""
    return datetime.fromtimestamp(at // 1_000_000, UTC).isoformat(timespec="seconds")
