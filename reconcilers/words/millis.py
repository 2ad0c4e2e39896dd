"""A date as Cassandra keeps it: a number, for a calendar has fewer dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Millis(int):
    """A cell of type timestamp: milliseconds since 1970, any that 64 bits hold.

    As text an ISO date in UTC; a number where no calendar of ours has that year.
    """

    def __str__(self) -> str:
        """The date, else the number."""
        try:
            return (EPOCH + timedelta(milliseconds=self)).replace(tzinfo=None).isoformat()
        except OverflowError:
            return int.__repr__(self)

    @classmethod
    def of(cls, date: datetime) -> Millis:
        """The milliseconds of a date, which is in UTC where it names no zone."""
        zoned = date.replace(tzinfo=date.tzinfo or UTC)
        return cls((zoned - EPOCH) // timedelta(milliseconds=1))
