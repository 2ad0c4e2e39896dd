"""A record of Kafka."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """One record; ``key`` and ``value`` are bytes or None."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
