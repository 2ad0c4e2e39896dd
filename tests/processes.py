"""What each process of a run spends, from /proc: CPU time and resident memory."""

from __future__ import annotations

import os
import re
import threading
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.embedded.layout import Layout
from deploy.embedded.process import Daemon
from tests.endpoints import Endpoints

EVERY = 1.0
"""Seconds between two samples: to look through all processes takes time itself."""
TICK = 1 / os.sysconf("SC_CLK_TCK")
SERVERS = {"Cassandra": "cassandra", "broker": "kafka", "agent": "agent"}
"""The servers of an embedded stack, by what a table calls them."""
JVM, COMPILER, WORKERS, DRIVER = "Spark's JVM", "its compiler", "Python workers", "driver"
EXECUTORS = "executors' JVMs"
"""Of a cluster, with its daemons; their compilers count as those of the stream's own JVM."""
NAMES = (*SERVERS, JVM, COMPILER, WORKERS, DRIVER)
OF_A_CLUSTER = (b"executor.CoarseGrainedExecutorBackend", b"deploy.worker.Worker")
"""What is in the commands of a cluster's JVMs alone."""
COMPILES = re.compile(r"C[12] Compiler")
"""Threads of the JVM that compile: in its first minutes they take as much as all the others."""

Spent = Mapping[str, float]
"""CPU seconds, by name of the process."""


def servers_of(stack: Endpoints) -> dict[str, int]:
    """The pids of a stack's servers, by name; none where it does not run here."""
    layout = Layout(stack.config.parent)
    found = {name: Daemon(each, layout.run, layout.logs).pid() for name, each in SERVERS.items()}
    return {name: pid for name, pid in found.items() if pid is not None}


def spent_by(servers: Mapping[str, int], *sessions: int) -> Spent:
    """What the servers and all processes of a stream's sessions have spent since they began.

    Of children that have ended a process has the time itself, once it has waited for them.
    """
    spent: dict[str, float] = defaultdict(float)
    for name, pid in servers.items():
        spent[name] += _seconds(Path(f"/proc/{pid}"))
    for process in _members(*sessions):
        role = _role(process)
        spent[role] += _seconds(process)
        if role in (JVM, EXECUTORS):
            compiling = compiling_of(process)
            spent[role] -= compiling
            spent[COMPILER] += compiling
    return dict(spent)


def workers_rss(*sessions: int) -> list[float]:
    """Resident MiB of the Python workers in some sessions (they leave the process group)."""
    return [_rss(each) for each in _members(*sessions) if _role(each) == WORKERS]


def pids_of(session: int) -> list[int]:
    """The processes of a session (a stream's workers leave its process group)."""
    return [int(each.name) for each in _members(session)]


@dataclass
class CpuWatch:
    """Samples of what is spent, taken by a thread of its own while it is entered.

    ``rss`` is the largest resident memory of a Python worker so far, MiB. ``elsewhere`` are the
    sessions of executors that a cluster has started.
    """

    servers: Mapping[str, int]
    session: int
    samples: list[tuple[float, Spent]] = field(default_factory=list)
    rss: float = 0.0
    elsewhere: Sequence[int] = ()
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def between(self, begin: float, end: float) -> Spent:
        """What was spent between two moments (seconds since the epoch)."""
        before, after = self._at(begin), self._at(end)
        return {name: after[name] - before.get(name, 0.0) for name in after}

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            ours = (self.session, *self.elsewhere)
            self.samples.append((time.time(), spent_by(self.servers, *ours)))
            self.rss = max([self.rss, *workers_rss(*ours)])

    def _at(self, moment: float) -> Spent:
        """Between two samples everything is spent evenly."""
        place = bisect_right(self.samples, moment, key=lambda sample: sample[0])
        if place in (0, len(self.samples)):
            return self.samples[max(0, place - 1)][1] if self.samples else {}
        (early, before), (late, after) = self.samples[place - 1], self.samples[place]
        share = (moment - early) / (late - early)
        found = dict(before)  # also of a process that has ended since
        for name, spent in after.items():
            found[name] = before.get(name, 0.0) + share * (spent - before.get(name, 0.0))
        return found


def _members(*sessions: int) -> Iterator[Path]:
    wanted = {*map(str, sessions)}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            numbers = _stat(process)
            if numbers and numbers[3] in wanted:
                yield process


def _stat(process: Path) -> list[str]:
    """The fields after the program's name, which may hold anything; none of a process that is gone.

    3 is the session, 11 to 14 are the ticks of CPU: its own, the system's, those of its children.
    """
    try:
        return (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _seconds(process: Path) -> float:
    return sum(int(each) for each in _stat(process)[11:15]) * TICK


def compiling_of(process: Path) -> float:
    """Of the threads that still live (`LONG_LIVED` keeps them); 0 of a process that is gone."""
    try:
        threads = list((process / "task").iterdir())
    except OSError:
        return 0.0
    compilers = (each for each in threads if COMPILES.match(_name(each)))
    return sum(int(ticks) for each in compilers for ticks in _stat(each)[11:13]) * TICK


def _name(thread: Path) -> str:
    """Empty where it has ended meanwhile, as others than those that compile often do."""
    try:
        return (thread / "comm").read_text()
    except OSError:
        return ""


def _role(process: Path) -> str:
    try:
        command = (process / "cmdline").read_bytes()
    except OSError:
        return DRIVER
    if b"pyspark.daemon" in command:
        return WORKERS
    if any(each in command for each in OF_A_CLUSTER):
        return EXECUTORS
    return JVM if b"org.apache.spark" in command else DRIVER


def _rss(process: Path) -> float:
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)
