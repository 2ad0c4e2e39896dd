"""Timestamps of Cassandra as numbers, because Python's calendar has fewer dates than Cassandra."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Millis(int):
    """Milliseconds since 1970, in 64 bits; as text an ISO date in UTC, if Python has the year."""

    def __str__(self) -> str:
        try:
            return (EPOCH + timedelta(milliseconds=self)).replace(tzinfo=None).isoformat()
        except OverflowError:
            return int.__repr__(self)

    @classmethod
    def of(cls, date: datetime) -> Millis:
        """The milliseconds of a date. A date without a zone is taken as UTC."""
        zoned = date.replace(tzinfo=date.tzinfo or UTC)
        return cls((zoned - EPOCH) // timedelta(milliseconds=1))
