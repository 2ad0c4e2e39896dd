"""The hours of the day in which a sweep reads. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

FORM = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|(24):(00))")
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Hours:
    """A part of each day of local time, from ``begin`` to before ``end``, over midnight too."""

    begin: timedelta
    end: timedelta

    @classmethod
    def of(cls, text: str) -> Hours:
        """Read ``01:00-05:00``. Raises `ValueError`."""
        found = FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"{text} is not of the form 01:00-05:00")
        hour, minute, *end = (int(each) for each in found.groups() if each is not None)
        hours = cls(timedelta(hours=hour, minutes=minute), timedelta(hours=end[0], minutes=end[1]))
        if hours.begin == hours.end:
            raise ValueError(f"{text} begins when it ends; the whole day is 00:00-24:00")
        return hours

    def opens_in(self, now: datetime) -> timedelta:
        """How long until they begin; zero within them. ``now`` is local time."""
        since = timedelta(hours=now.hour, minutes=now.minute, seconds=now.second)
        since += timedelta(microseconds=now.microsecond)
        lasts = (self.end - self.begin) % DAY or DAY
        if (since - self.begin) % DAY < lasts:
            return timedelta(0)
        return (self.begin - since) % DAY

    def closed(self, now: datetime) -> str | None:
        """Why a sweep waits at ``now``; None within the hours."""
        opens_in = self.opens_in(now)
        at = (now + opens_in).strftime("%H:%M")
        return f"until {at} local time (sweep.between)" if opens_in else None
