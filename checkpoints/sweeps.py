"""Sweeps: which were started, and how far each has come (the port)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from reconcilers.words.model import Micros

RangeKey = tuple[str, int]
"""A table, and the number of a token range, the first of adjacent ones."""
AHEAD = ", ahead"
"""The suffix of a table's name that marks the start of reading ahead, which is no range."""


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """One sweep. Times are µs, None if something has not happened; ``outcome`` is in words.

    ``systems`` are the projections that it compares, ``ranges`` the number of ranges of each table.
    ``truth_swept_at`` is when all of the truth had been read.
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
    """The numbers of rows and suspects in so many adjacent ``ranges``."""

    rows: int
    suspects: int
    ranges: int = 1


def of_systems(sweeps: Iterable[SweepRecord], systems: Collection[str]) -> list[SweepRecord]:
    """Those that compare any of these systems: the sweeps of a family, by its names."""
    return [each for each in sweeps if not {*systems}.isdisjoint(each.systems)]


class Sweeps(Protocol):
    """The sweeps of one installation. Each call is idempotent, and durable when it returns."""

    def begin(self, sweep: SweepRecord) -> None:
        """Store that a sweep has started."""

    def all(self) -> tuple[SweepRecord, ...]:
        """Every sweep, newest first."""

    def swept(self, sweep: SweepRecord, ranges: Mapping[RangeKey, SweptRange]) -> None:
        """Store ranges whose suspects were handed over, or are part of one finding."""

    def ranges(self, sweep: SweepRecord) -> dict[RangeKey, SweptRange]:
        """The ranges that are done; empty for a sweep that has ended."""

    def truth_swept(self, sweep: SweepRecord, at: Micros) -> None:
        """Store that the whole truth had been read at a time (µs)."""

    def end(self, sweep: SweepRecord, at: Micros, outcome: str) -> None:
        """Store that a sweep ended at a time (µs), and remove its ranges."""
