"""Times as text: ISO 8601 in UTC. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from reconcilers.words.model import Micros


def iso(at: Micros) -> str:
    """The text of a time in µs since the epoch, to the second."""
    return datetime.fromtimestamp(at // 1_000_000, UTC).isoformat(timespec="seconds")


def exact(at: Micros) -> str | Micros:
    """The text of a time in µs since the epoch, to the µs; the number if no calendar has it."""
    seconds, micros = divmod(at, 1_000_000)
    try:
        whole = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # a client may write any time
        return at
    return whole.replace(microsecond=micros).isoformat(timespec="microseconds")
