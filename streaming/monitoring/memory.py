"""The memory of this process with its children: Spark's JVM and the Python workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

KIB = 1024
GROUP_LIMITS = ("memory.max", "memory.limit_in_bytes")
"""The files with a control group's limit, in versions 2 and 1."""


@dataclass(frozen=True, slots=True)
class MemoryCollector(Collector):
    """Exports the memory in use and its limit. ``root`` is the folder with ``proc`` and ``sys``.

    A page that forked workers share counts for each of them.
    """

    root: Path = Path("/")
    pid: int | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Measure at each scrape. Exports nothing on a system without ``/proc``."""
        if not (self.root / "proc" / "meminfo").exists():
            return
        used = sum(self._anonymous(each) for each in self._tree())
        told = "Memory of the process, its JVM and its Python workers"
        yield GaugeMetricFamily("reconciler_memory_bytes", told, value=used)
        told = "The limit of its control group, or the memory of the machine"
        yield GaugeMetricFamily("reconciler_memory_limit_bytes", told, value=self._limit())

    def _tree(self) -> Iterator[int]:
        """This process and its descendants."""
        children: dict[int, list[int]] = {}
        for each in (self.root / "proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended
                parent = each.read_text("utf-8", "replace").rpartition(")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(each.parent.name))
        left = [self.pid or os.getpid()]
        while left:
            found = left.pop()
            yield found
            left += children.get(found, ())

    def _anonymous(self, pid: int) -> int:
        """The bytes in memory that belong to no file; 0 if the process has ended."""
        with suppress(OSError):
            return _kib(self.root / "proc" / str(pid) / "status", "RssAnon:")
        return 0

    def _limit(self) -> int:
        limits = [_kib(self.root / "proc" / "meminfo", "MemTotal:")]
        for folder in self._groups():
            for name in GROUP_LIMITS:
                with suppress(OSError, ValueError):  # "max" is no limit
                    limits.append(int((folder / name).read_text("ascii")))
        return min(limits)

    def _groups(self) -> Iterator[Path]:
        """The folders of the control group and of all above it."""
        mounted = self.root / "sys" / "fs" / "cgroup"
        yield from (mounted, mounted / "memory")
        with suppress(OSError):
            lines = (self.root / "proc" / "self" / "cgroup").read_text("utf-8").splitlines()
            for line in lines:
                _, controllers, path = line.split(":", 2)
                top = mounted / controllers if controllers else mounted
                parts = Path(path.lstrip("/")).parts
                yield from (top.joinpath(*parts[:end]) for end in range(1, len(parts) + 1))


def _kib(file: Path, name: str) -> int:
    """A line of a file of ``/proc`` in bytes; 0 if it is not there."""
    for line in file.read_text("utf-8", "replace").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * KIB
    return 0
