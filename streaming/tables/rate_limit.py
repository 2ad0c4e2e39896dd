"""A limit on the rows read per second, which protects production."""

from __future__ import annotations

import time


class RateLimiter:
    """Keeps reads below a number of rows a second, of all tasks that read at a time together."""

    def __init__(self, rows_per_second: int) -> None:
        self._seconds_per_row = 1 / rows_per_second
        self._tasks = 1
        self._free_at = time.monotonic()

    def share(self, tasks: int) -> None:
        """From now on read one part of ``tasks``: so many processes read at a time."""
        self._tasks = tasks

    def spend(self, rows: int) -> None:
        """Account for rows just read; sleep if they were read too fast."""
        now = time.monotonic()
        self._free_at = max(self._free_at, now - 1) + rows * self._tasks * self._seconds_per_row
        if self._free_at > now:
            time.sleep(self._free_at - now)
