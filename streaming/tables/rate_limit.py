"""A limit on the rows read per second, which protects production.

While Cassandra answers slowly it is lower: half of what was read, and half again each second.
"""

from __future__ import annotations

import logging
import time

from streaming.tables.server_load import LOAD, ServerLoad

log = logging.getLogger("reconciler")

LEAST = 100.0
"""Rows a second, of all tasks together, below which no slow answer lowers a limit."""
GROWS = 1.25
"""Times by which a lowered limit grows in each second without slow answers."""
WINDOW = 1.0
"""Seconds over which it is measured what was read."""


class Limit:
    """A number of rows a second, which slow answers lower."""

    def __init__(self, most: float, load: ServerLoad) -> None:
        self._most = self.now = most
        self._load, self._slow_windows = load, load.slow_windows
        self._since, self._rows, self._rate = time.monotonic(), 0, 0.0

    def adapt(self, now: float, rows: int) -> None:
        """Take in rows that were read up to ``now``, and whether answers were slow meanwhile."""
        self._rows += rows
        took = now - self._since
        rate = self._rows / max(took, WINDOW)
        if self._load.slow_windows != self._slow_windows:
            if self.now == self._most > LEAST:
                log.warning("Cassandra answers slowly: fewer rows are read a second")
            self.now = min(self._most, max(LEAST, min(self.now, max(rate, self._rate)) / 2))
            self._slow_windows = self._load.slow_windows
        elif took < WINDOW:
            return
        elif self.now < self._most:
            self.now = min(self._most, self.now * GROWS ** min(took, 60.0))
            if self.now == self._most:
                log.info("Cassandra answers as usual: rows are read at the usual rate")
        self._since, self._rows, self._rate = now, 0, rate


class RateLimiter:
    """Keeps reads below a number of rows a second, of all tasks that read at a time together."""

    def __init__(self, rows_per_second: int, load: ServerLoad = LOAD) -> None:
        self._limit = Limit(rows_per_second, load)
        self._tasks = 1
        self._free_at = time.monotonic()

    def share(self, tasks: int) -> None:
        """From now on read one part of ``tasks``: so many processes read at a time."""
        self._tasks = tasks

    def spend(self, rows: int) -> None:
        """Account for rows just read; sleep if they were read too fast."""
        now, of_all = time.monotonic(), rows * self._tasks
        self._limit.adapt(now, of_all)
        self._free_at = max(self._free_at, now - 1) + of_all / self._limit.now
        if self._free_at > now:
            time.sleep(self._free_at - now)
