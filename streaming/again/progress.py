"""The progress of a sweep or replay: a bar on a terminal, else lines on stderr or in the log."""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass, field

from prometheus_client import Counter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from checkpoints.sweeps import AHEAD
from streaming.again.rounds import SweepProgress

log = logging.getLogger("reconciler")

EVERY, LOGGED_EVERY = 10.0, 60.0
"""Seconds between two lines, on standard error and in the log."""


@dataclass(slots=True)
class TableProgress:
    """The progress of one table. ``done`` includes ranges of earlier processes, ``read`` does not.

    ``began`` is by the monotonic clock (s); ``unit`` names what ``rows`` counts.
    """

    name: str = ""
    ranges: int = 0
    done: int = 0
    rows: int = 0
    suspects: int = 0
    began: float = field(default_factory=time.monotonic)
    read: int = 0
    unit: str = "rows"

    def add(self, ranges: int, rows: int, suspects: int) -> None:
        """Add what was just done."""
        self.done += ranges
        self.read += ranges
        self.rows += rows
        self.suspects += suspects

    @property
    def over(self) -> bool:
        """Whether all ranges are done."""
        return self.done == self.ranges

    def told(self) -> str:
        """How much was read, and how fast."""
        took = max(time.monotonic() - self.began, 0.001)
        pace = f"{self.rows / took:,.0f} {self.unit}/s"
        return f"{self.rows} {self.unit}, {pace}, {self.suspects} suspects"

    def line(self) -> str:
        """The progress in one line."""
        left, end = self.ranges - self.done, ""
        if self.read and left:
            end = f", {(time.monotonic() - self.began) / self.read * left:,.0f} s left"
        return f"{self.name}: {self.done} of {self.ranges} ranges, {self.told()}{end}"


@dataclass(slots=True)
class CountedProgress:
    """`streaming.again.rounds.SweepProgress` that also counts the rows that are compared.

    Rows read ahead are shown only: their scan follows.
    """

    shown: SweepProgress
    rows: Counter
    _ahead: bool = False

    def table(self, name: str, done: int, ranges: int) -> None:
        """Begin the next table."""
        self._ahead = name.endswith(AHEAD)
        self.shown.table(name, done, ranges)

    def round(self, ranges: int, rows: int, suspects: int) -> None:
        """Add what was just done."""
        if not self._ahead:
            self.rows.inc(rows)
        self.shown.round(ranges, rows, suspects)

    def waiting(self, why: str) -> None:
        """Show why the work waits."""
        self.shown.waiting(why)


class ShownProgress:
    """`streaming.again.rounds.SweepProgress` for a person (a context manager)."""

    def __init__(self, unit: str = "rows") -> None:
        self._unit = unit
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
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the bar; its last line stays."""
        self._bar.stop()

    def table(self, name: str, done: int, ranges: int) -> None:
        """Begin the next table."""
        self._table = TableProgress(name, ranges, done, unit=self._unit)
        self._bar.reset(self._task, description=name, total=ranges, completed=done, told="")
        self._say(self._table.line())

    def round(self, ranges: int, rows: int, suspects: int) -> None:
        """Add what was just done; print a line every `EVERY` seconds and at the end."""
        table = self._table
        table.add(ranges, rows, suspects)
        self._bar.update(self._task, completed=table.done, told=table.told())
        if time.monotonic() > self._told_at + EVERY or table.over:
            self._say(table.line())

    def waiting(self, why: str) -> None:
        """Show why the work waits."""
        self._bar.update(self._task, told=f"waits: {why}")
        self._say(f"{self._table.name}: waits: {why}")

    def _say(self, line: str) -> None:
        self._told_at = time.monotonic()
        if self._bar.disable:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()


class LoggedProgress:
    """`streaming.again.rounds.SweepProgress` in the log of a stream."""

    def __init__(self) -> None:
        self._table = TableProgress()
        self._told_at = time.monotonic()

    def table(self, name: str, done: int, ranges: int) -> None:
        """Begin the next table."""
        self._table = TableProgress(name, ranges, done)
        self._tell()

    def round(self, ranges: int, rows: int, suspects: int) -> None:
        """Add what was just done; log a line every `LOGGED_EVERY` seconds and at the end."""
        self._table.add(ranges, rows, suspects)
        if time.monotonic() > self._told_at + LOGGED_EVERY or self._table.over:
            self._tell()

    def waiting(self, why: str) -> None:
        """Log why the work waits."""
        log.warning("sweep: %s: waits: %s", self._table.name, why)

    def _tell(self) -> None:
        self._told_at = time.monotonic()
        log.info("sweep: %s", self._table.line())
