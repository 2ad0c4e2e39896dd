"""The fake of `checkpoints.sweeps`, in this process's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from checkpoints.sweeps import RangeKey, SweepRecord, SweptRange
from reconcilers.words.model import Micros


class MemorySweeps:
    """`checkpoints.sweeps.Sweeps` in dictionaries."""

    def __init__(self) -> None:
        self._all: dict[Micros, SweepRecord] = {}
        self._ranges: dict[Micros, dict[RangeKey, SweptRange]] = {}

    def begin(self, sweep: SweepRecord) -> None:
        self._all.setdefault(sweep.began_at, sweep)

    def all(self) -> tuple[SweepRecord, ...]:
        return tuple(self._all[at] for at in sorted(self._all, reverse=True))

    def swept(self, sweep: SweepRecord, ranges: Mapping[RangeKey, SweptRange]) -> None:
        self._ranges.setdefault(sweep.began_at, {}).update(ranges)

    def ranges(self, sweep: SweepRecord) -> dict[RangeKey, SweptRange]:
        return dict(self._ranges.get(sweep.began_at, {}))

    def truth_swept(self, sweep: SweepRecord, at: Micros) -> None:
        self._all[sweep.began_at] = replace(self._all[sweep.began_at], truth_swept_at=at)

    def end(self, sweep: SweepRecord, at: Micros, outcome: str) -> None:
        was = self._all[sweep.began_at]
        self._all[sweep.began_at] = replace(was, ended_at=at, outcome=outcome)
        self._ranges.pop(sweep.began_at, None)
