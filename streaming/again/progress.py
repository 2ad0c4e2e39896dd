"""How far a sweep is, on standard error: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

EVERY = 10.0
"""Seconds between two lines."""


@dataclass(slots=True)
class TableProgress:
    """How far one table is; ``done`` counts what was done before, too. ``began``: steady clock."""

    name: str = ""
    ranges: int = 0
    done: int = 0
    rows: int = 0
    suspects: int = 0
    began: float = field(default_factory=time.monotonic)
    read: int = 0

    def told(self) -> str:
        """What was read, and how fast."""
        took = max(time.monotonic() - self.began, 0.001)
        return f"{self.rows} rows, {self.rows / took:,.0f} rows/s, {self.suspects} suspects"

    def line(self) -> str:
        """All of it."""
        left, end = self.ranges - self.done, ""
        if self.read and left:
            end = f", {(time.monotonic() - self.began) / self.read * left:,.0f} s left"
        return f"{self.name}: {self.done} of {self.ranges} ranges, {self.told()}{end}"


class ShownProgress:
    """`streaming.again.sweep.SweepProgress` for a person (a context manager)."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._table = TableProgress()
        self._told_at = time.monotonic()
        self._task = self._bar.add_task("", total=None, told="")

    def __enter__(self) -> ShownProgress:
        """Begin to show it."""
        self._bar.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """The last line stays."""
        self._bar.stop()

    def table(self, name: str, done: int, ranges: int) -> None:
        """The next table."""
        self._table = TableProgress(name, ranges, done)
        self._bar.reset(self._task, description=name, total=ranges, completed=done, told="")
        self._say(self._table.line())

    def round(self, ranges: int, rows: int, suspects: int) -> None:
        """So much was just done."""
        table = self._table
        table.done += ranges
        table.read += ranges
        table.rows += rows
        table.suspects += suspects
        self._bar.update(self._task, completed=table.done, told=table.told())
        if time.monotonic() > self._told_at + EVERY or table.done == table.ranges:
            self._say(table.line())

    def waiting(self, why: str) -> None:
        """Nothing goes on for now."""
        self._bar.update(self._task, told=f"waits: {why}")
        self._say(f"{self._table.name}: waits: {why}")

    def _say(self, line: str) -> None:
        self._told_at = time.monotonic()
        if self._bar.disable:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
