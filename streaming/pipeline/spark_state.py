"""What a running Spark reports of itself: its executors, its stages, and whether it has ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from pyspark.sql import SparkSession

from reconcilers.words.errors import SparkDied
from streaming.pipeline.executors import Executor, Stage
from streaming.pipeline.spark_errors import spark_there

DRIVER = "driver"
MOST = 100
"""Ended executors that are kept; Spark's own store has as many."""
CLIENT = "ClientEndpoint: "
"""What each line of Spark's client of a standalone master contains."""
_ADDED = re.compile(r"Executor added: \S+/(\d+) on \S+ \((.+):\d+\)")
_ENDED = re.compile(r"Executor updated: \S+/(\d+) is now (EXITED|FAILED|LOST|KILLED)(?: \((.*)\))?")


@dataclass(slots=True)
class StandaloneLog:
    """Executors that a standalone master reports as ended, also those that never reached us.

    An executor that ends at its start (no interpreter, a full disk) is in no other report.
    """

    _hosts: dict[str, str] = field(default_factory=dict)
    _ended: dict[str, Executor] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, line: str) -> bool:
        """Take in a line of the JVM's. Returns whether it is one of these."""
        if CLIENT not in line:
            return False
        with self._lock:
            if (added := _ADDED.search(line)) is not None:
                self._hosts[added[1]] = added[2]
            if (ended := _ENDED.search(line)) is not None:
                number, why = ended[1], ended[3] or ended[2].lower()
                host = self._hosts.pop(number, "an unknown host")
                self._ended[number] = Executor(number, host, lost=why)
                self._ended = dict(list(self._ended.items())[-MOST:])
        return True

    def ended(self) -> Sequence[Executor]:
        """Those that have ended lately."""
        with self._lock:
            return list(self._ended.values())


STANDALONE = StandaloneLog()
"""Of the one JVM of this process."""


@dataclass(frozen=True, slots=True)
class RunningSpark:
    """Asks the JVM; each question takes about a millisecond."""

    spark: SparkSession

    def check(self) -> None:
        """Raise `SparkDied` if the cluster has ended the application, or the JVM is gone."""
        with spark_there():
            if self._context.isStopped():
                raise SparkDied("Spark's master has ended the application: start again")

    def executors(self) -> Sequence[Executor]:
        """Those that are there, and those that were lost lately. Raises `SparkDied`."""
        self.check()
        with spark_there():
            listed = self._context.statusStore().executorList(False)
            found = [_executor(listed.apply(number)) for number in range(listed.size())]
        known = {each.number for each in found if each.lost is not None}
        others = (each for each in STANDALONE.ended() if each.number not in known)
        return [*(each for each in found if each.number != DRIVER), *others]

    def stages(self) -> Sequence[Stage]:
        """The stages that run. Raises `SparkDied`."""
        self.check()
        with spark_there():
            tracker = self.spark.sparkContext.statusTracker()
            told = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
        return [Stage(it.stageId, it.numTasks, it.numCompletedTasks) for it in told if it]

    @property
    def _context(self) -> Any:
        java: Any = self.spark.sparkContext._jsc  # noqa: SLF001 (no public way to ask)
        if java is None:
            raise SparkDied("Spark was stopped by this process")
        return java.sc()


def _executor(told: Any) -> Executor:
    why: str | None = None
    if not told.isActive():
        why = str(told.removeReason().get()) if told.removeReason().isDefined() else "no reason"
    host = str(told.hostPort()).rpartition(":")[0]
    return Executor(str(told.id()), host, int(told.activeTasks()), _one_line(why))


def _one_line(why: str | None) -> str | None:
    return why if why is None else " ".join(why.split())[:300]
