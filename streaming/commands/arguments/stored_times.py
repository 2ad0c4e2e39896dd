"""Times (µs) in what the journal stores, as ISO 8601 for what is printed."""

from __future__ import annotations

from typing import Any

from checkpoints.codec import Json
from reconcilers.words.iso import exact

TIMES = frozenset(
    {
        "at",
        "deleted_by_us_at",
        "found_at",
        "had_at",
        "next_look",
        "oldest",
        "projection_deletes",
        "recorded_at",
        "swept_at",
        "tried_at",
        "truth_deletes",
        "watched_since",
        "written",
    }
)
"""Members that are a time, or have several."""
CELLS = "cells"
"""The member with values of Cassandra, which may have any names."""


def with_iso_times(stored: Json) -> Json:
    """A copy in which each time is a text, to the µs."""
    return {name: _member(name, value) for name, value in stored.items()}


def _member(name: str, value: Any) -> Any:
    if name in TIMES:
        return _time(value)
    match value:
        case dict() if name != CELLS:
            return with_iso_times(value)
        case list():
            return [_member(name, each) for each in value]
    return value


def _time(value: Any) -> Any:
    """A time, or all times of an object or a list, as text."""
    match value:
        case int():
            return exact(value)
        case dict():
            return {name: _time(each) for name, each in value.items()}
        case list():
            return [_time(each) for each in value]
    return value
