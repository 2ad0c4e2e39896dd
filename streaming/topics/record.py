"""A record as Kafka holds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """One record; ``key`` and ``value`` are bytes, or none."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
