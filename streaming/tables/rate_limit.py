"""A limit on the rows read per second, which protects production."""

from __future__ import annotations

import time


class RateLimiter:
    """Keeps reads below a number of rows a second."""

    def __init__(self, rows_per_second: int) -> None:
        self._seconds_per_row = 1 / rows_per_second
        self._free_at = time.monotonic()

    def spend(self, rows: int) -> None:
        """Account for rows just read; sleep if they were read too fast."""
        now = time.monotonic()
        self._free_at = max(self._free_at, now - 1) + rows * self._seconds_per_row
        if self._free_at > now:
            time.sleep(self._free_at - now)
