"""How often a query has died since it last ended a batch, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.words.errors import EndedItself
from streaming.pipeline.spark_errors import is_of_servers

DIES_FOR = 1_800.0
"""Seconds: one that dies for so long, and ends no batch, is given a new process. A single record
that kills it is given up sooner (`failures.ALONE_FOR`)."""


@dataclass(slots=True)
class Deaths:
    """Those of a query since it last ended a batch. Seconds of a steady clock."""

    number: int = 0
    _since: float | None = None

    def count(self, why: str, now: float) -> None:
        """It has died again. Raises `EndedItself` when it does for too long.

        Not while servers are away or refuse: it waits for them, however long that takes.
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
