"""Times as people read them: ISO 8601 in UTC, to the second. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from reconcilers.words.model import Micros


def iso(at: Micros) -> str:
    """A time of ours (µs since the epoch)."""
    return datetime.fromtimestamp(at // 1_000_000, UTC).isoformat(timespec="seconds")
