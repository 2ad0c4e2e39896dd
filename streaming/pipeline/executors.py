"""A cluster's executors: fewer than asked for, lost ones, and stages that wait for a host.

Spark itself waits without a word. The watch looks every few seconds and logs what Spark waits for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from threading import Event
from typing import Protocol

from reconcilers.words.errors import SparkDied, Unreachable

log = logging.getLogger("reconciler")

EVERY = 5.0
"""Seconds between two looks."""
AT_FIRST = 30.0
"""Seconds for which executors may be missing without a line: they start."""
A_MINUTE = 60.0
"""Seconds between two lines of one kind; so long a stage may finish no task without one."""


@dataclass(frozen=True, slots=True)
class Executor:
    """One executor. ``lost`` is why it is gone; None if it is there, with so many ``tasks``."""

    number: str
    host: str
    tasks: int = 0
    lost: str | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that runs: how many tasks it has, and how many of them are done."""

    number: int
    tasks: int
    done: int


class SparkState(Protocol):
    """What Spark reports of itself; `spark_state.RunningSpark` is the real one."""

    def executors(self) -> Sequence[Executor]:
        """Those that are there, and those that were lost lately. Raises `SparkDied`."""

    def stages(self) -> Sequence[Stage]:
        """The stages that run. Raises `SparkDied`."""


def asked_for(master: str, options: Mapping[str, str]) -> int:
    """How many executors these options ask for; at least 1."""
    instances = options.get("spark.executor.instances", "")
    if instances.isdigit():
        return int(instances)
    if not master.startswith("spark://"):
        return 2  # Spark's default on Kubernetes and YARN
    most, each = options.get("spark.cores.max", ""), options.get("spark.executor.cores", "")
    return ceil(int(most) / int(each)) if most.isdigit() and each.isdigit() else 1


@dataclass(slots=True)
class Lasting:
    """Something that lasts: a line is due ``after`` so many seconds, then once a minute."""

    after: float
    _since: float | None = None
    _told: float = -inf

    def over(self) -> None:
        """It is over, or has begun again."""
        self._since, self._told = None, -inf

    def seconds(self, now: float) -> float:
        """How long it has lasted; it begins with the first call."""
        self._since = now if self._since is None else self._since
        return now - self._since

    def is_due(self, now: float) -> bool:
        """Whether a line is due, which counts as logged."""
        due = self.seconds(now) >= self.after and now - self._told >= A_MINUTE
        if due:
            self._told = now
        return due


@dataclass(slots=True)
class ExecutorWatch:
    """Logs what Spark waits for: ``asked`` is the number of executors. Seconds are monotonic."""

    spark: SparkState
    asked: int
    _missing: Lasting = field(default_factory=lambda: Lasting(AT_FIRST))
    _losing: Lasting = field(default_factory=lambda: Lasting(0))
    _known: set[str] = field(default_factory=set)
    _untold: list[Executor] = field(default_factory=list)
    _stages: dict[Stage, Lasting] = field(default_factory=dict)

    def run(self, stop: Event) -> None:
        """Look until told to stop, or until Spark has ended."""
        while not stop.wait(EVERY):
            try:
                self.look(time.monotonic())
            except SparkDied:
                return  # who uses it is told

    def look(self, now: float) -> None:
        """Look once. Raises `SparkDied`."""
        executors = self.spark.executors()
        there = [each for each in executors if each.lost is None]
        self._tell_lost(executors, now)
        self._tell_missing(len(there), now)
        self._tell_waiting(there, now)

    def _tell_lost(self, executors: Iterable[Executor], now: float) -> None:
        """Log lost executors: the first at once, of those that follow the last of each minute."""
        lost = [each for each in executors if each.lost is not None]
        self._untold += [each for each in lost if each.number not in self._known]
        self._known |= {each.number for each in lost}
        if self._untold and self._losing.is_due(now):
            number, last = len(self._untold), self._untold[-1]
            what = "an executor was lost" if number == 1 else f"{number} executors were lost"
            log.warning("%s, the last on %s: %s", what, last.host, last.lost)
            self._untold.clear()

    def _tell_missing(self, there: int, now: float) -> None:
        if there >= self.asked:
            self._missing.over()
        elif self._missing.is_due(now):
            log.warning(
                "Spark has %d of %d executors for %.0f s: its cluster has no free cores or memory"
                " for more, or they end at their start (their logs are on its hosts)",
                *(there, self.asked, self._missing.seconds(now)),
            )

    def _tell_waiting(self, there: Iterable[Executor], now: float) -> None:
        """Log stages that finish no task. Another number of done tasks is another `Stage`."""
        hosts = sorted({each.host for each in there if each.tasks})
        running = self.spark.stages()
        self._stages = {each: self._stages.get(each, Lasting(A_MINUTE)) for each in running}
        for stage, waits in self._stages.items():
            if waits.is_due(now) and hosts:
                log.warning(
                    "a stage of Spark's waits for %.0f s for %s: %d of %d tasks are done",
                    *(waits.seconds(now), ", ".join(hosts), stage.done, stage.tasks),
                )


@dataclass(slots=True)
class EndWithoutExecutors:
    """Shows the number of executors, and ends the stream if it has none ``within`` seconds."""

    spark: SparkState
    show: Callable[[int], None]
    within: float
    _none: Lasting = field(default_factory=lambda: Lasting(0))

    def run(self, stop: Event) -> None:
        """Look until told to stop. Raises `Unreachable`, `SparkDied`."""
        while not stop.is_set():
            try:
                self.look(time.monotonic())
            except SparkDied:
                if not stop.wait(EVERY):  # a signal to the whole process group ends Spark first
                    raise
            stop.wait(EVERY)

    def look(self, now: float) -> None:
        """Look once. Raises `Unreachable`, `SparkDied`."""
        number = sum(1 for each in self.spark.executors() if each.lost is None)
        self.show(number)
        if number:
            self._none.over()
        elif self._none.seconds(now) >= self.within:
            raise Unreachable(
                f"Spark has had no executor for {self.within:g} s: start its cluster's workers, or"
                " free cores and memory there (stream.executors_within)"
            )
