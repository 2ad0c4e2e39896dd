"""Reads times, durations, days, ids and numbers. Times are µs since 1970."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TypeVar
from uuid import UUID

from checkpoints.clock import now_micros, to_micros
from reconcilers.words.model import Micros

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
T = TypeVar("T")


def time_of(text: str) -> Micros:
    """A time (µs) from ISO 8601; UTC without an offset. Raises `argparse.ArgumentTypeError`."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"{text!r} is no time as 2026-11-23T14:30") from wrong
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return to_micros(at.timestamp())


def duration_of(text: str) -> Micros:
    """A duration (µs) as 90s, 30m, 2h or 1d. Raises `argparse.ArgumentTypeError`."""
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration as 90s, 30m, 2h or 1d")
    return to_micros(int(found[1]) * SECONDS[found[2]])


def positive(text: str) -> int:
    """A whole number above 0. Raises `argparse.ArgumentTypeError`."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def uuid_of(text: str) -> UUID:
    """A mailbox id. Raises `argparse.ArgumentTypeError`."""
    return _read(UUID, text, "a mailbox id (a UUID)")


def day_of(text: str) -> date:
    """A day, or today, in UTC. Raises `argparse.ArgumentTypeError`."""
    if text == "today":
        return datetime.now(UTC).date()
    return _read(date.fromisoformat, text, "a day as YYYY-MM-DD, or today")


def moment_of(text: str) -> Micros:
    """A time (µs): ISO 8601, or how long ago. Raises `argparse.ArgumentTypeError`."""
    with suppress(argparse.ArgumentTypeError):
        return now_micros() - duration_of(text)
    return time_of(text)


def _read(read: Callable[[str], T], text: str, wanted: str) -> T:
    try:
        return read(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}") from wrong
