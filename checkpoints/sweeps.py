"""Sweeps: which were begun, how far each has come (the port).

Implementations: `checkpoints.cassandra.CassandraSweeps` (the real one) and
`tests.fakes.checkpoints.sweeps.MemorySweeps` (the fake); one contract test runs against both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from reconcilers.words.model import Micros

Place = tuple[str, int]
"""A table, and the number of one of its ranges of tokens."""
AHEAD = ", ahead"
"""A table's name that ends so marks that it was begun to be read ahead: that is no range."""


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """One sweep. Times are µs, None where something has not happened.

    ``systems`` are the projections that it compares, ``ranges`` how many there are of each table.
    ``truth_swept_at`` is when the last row of the truth had been read; ``outcome`` how it ended, in
    words.
    """

    began_at: Micros
    who: str
    reason: str
    systems: tuple[str, ...]
    ranges: int
    truth_swept_at: Micros | None = None
    ended_at: Micros | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class SweptRange:
    """What was in one range: rows, and suspects that were found."""

    rows: int
    suspects: int


class Sweeps(Protocol):
    """Of one installation. Each call is durable when it returns; done again, it changes nothing."""

    def begin(self, sweep: SweepRecord) -> None:
        """It is under way."""

    def all(self) -> tuple[SweepRecord, ...]:
        """Every sweep, the newest first."""

    def swept(self, sweep: SweepRecord, ranges: Mapping[Place, SweptRange]) -> None:
        """These ranges are done: their suspects were handed over, or one finding tells of them."""

    def ranges(self, sweep: SweepRecord) -> dict[Place, SweptRange]:
        """The ranges that are done; none of a sweep that has ended."""

    def truth_swept(self, sweep: SweepRecord, at: Micros) -> None:
        """The whole truth has been read by then."""

    def end(self, sweep: SweepRecord, at: Micros, outcome: str) -> None:
        """It is over; its ranges are forgotten."""
