"""How often a query has died since it last finished a batch, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.words.errors import EndedItself
from streaming.pipeline.spark_errors import is_of_servers

DIES_FOR = 1_800.0
"""Seconds of deaths without a finished batch after which a new process is started. A single record
that kills the query is given up sooner (`failures.ALONE_FOR`)."""


@dataclass(slots=True)
class Deaths:
    """The deaths of a query since it last finished a batch; monotonic seconds."""

    number: int = 0
    _since: float | None = None

    def count(self, why: str, now: float) -> None:
        """Count one more death. Raises `EndedItself` if the query dies for too long.

        Deaths while servers are away or refuse do not count: the query waits for them.
        """
        self.number += 1
        if is_of_servers(why):
            self._since = None
            return
        self._since = now if self._since is None else self._since
        if now - self._since > DIES_FOR:
            raise EndedItself(
                f"the query has died for {now - self._since:.0f} s and ended no batch: {why}"
            )
