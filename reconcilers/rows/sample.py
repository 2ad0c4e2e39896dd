"""The sampler: which changed keys are looked at 10 s, 1 min and 10 min after the change. Pure.

It measures how consistent the projections are, and decides on no repair. One key in ``one_in`` is
sampled, by a hash of the key (`is_sampled`): a replay samples the same keys. Each change of a key
counts once, by its write time. A change that was read too late for a look counts as *not looked
at*, never as consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from heapq import heappop, heappush
from itertools import product
from operator import itemgetter
from zlib import crc32

from reconcilers.rows.nines import KnownShare
from reconcilers.words.model import SECOND, KeyValue, Kind, Micros, Slot

AGES: tuple[Micros, ...] = (10 * SECOND, 60 * SECOND, 600 * SECOND)
"""How old (µs) a change is at its looks."""
MOST_KEYS = 100_000
"""Changes that are remembered, and looks that wait."""


def age_label(age: Micros) -> str:
    """An age (µs) as metrics name it, in seconds."""
    return str(age // SECOND)


class SampleResult(StrEnum):
    """The result of a look at one sampled change. The value is used in metrics."""

    CONSISTENT = "consistent"
    INCONSISTENT = "inconsistent"
    NOT_LOOKED_AT = "not_looked_at"
    OVERTAKEN = "overtaken"
    """A newer change was found, or the row is gone: this look says nothing of its change."""


def is_sampled(key: bytes, one_in: int) -> bool:
    """Whether a key, as its event has it, is a sampled one, in every process; 0 samples none.

    Spark evaluates the same rule where it reads the events (`streaming.pipeline.sample_events`).
    """
    return one_in > 0 and crc32(key) % one_in == 0


@dataclass(frozen=True, slots=True)
class SampledChange:
    """A change of a sampled key: its slot, the source that its event names, its write time (µs)."""

    slot: Slot
    source: KeyValue
    written: Micros


@dataclass(frozen=True, slots=True)
class SampledBatch:
    """Sampled changes that were read together, and how many more were ``left_out``."""

    changes: Sequence[SampledChange] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True, order=True)
class SampledLook:
    """A look at a key that is ``due`` (µs) when its change has an age (µs)."""

    due: Micros
    age: Micros
    change: SampledChange = field(compare=False)

    def is_too_late(self, now: Micros) -> bool:
        """Whether a look now would not show the state at this age: it is half as old again."""
        return now > self.due + self.age // 2


def looks_of(change: SampledChange) -> Iterator[SampledLook]:
    """The looks at a key after a change."""
    return (SampledLook(change.written + age, age, change) for age in AGES)


def result_of(look: SampledLook, found: Kind | None, newest: Micros | None) -> SampleResult:
    """The result of a look that ``found`` this difference, or None.

    ``newest`` is the latest write time (µs) of the truth's row, None without a row.
    """
    if newest is None or newest > look.change.written:
        return SampleResult.OVERTAKEN
    return SampleResult.CONSISTENT if found is None else SampleResult.INCONSISTENT


COUNTED: Mapping[SampleResult, Callable[[KnownShare], KnownShare]] = {
    SampleResult.CONSISTENT: lambda share: replace(share, good=share.good + 1),
    SampleResult.INCONSISTENT: lambda share: replace(share, bad=share.bad + 1),
    SampleResult.NOT_LOOKED_AT: lambda share: replace(share, missing=share.missing + 1),
}


@dataclass(slots=True)
class Sample:
    """The sampled changes of one family, their pending looks, and the results.

    ``systems`` are its projections. Looks that were due up to ``due_after`` (µs) belong to an
    earlier process, and are not made. Changes that were written up to ``after`` (µs) were counted:
    it rises when more than ``most`` keys are remembered. ``left_out`` is the number of changes that
    came too late for it; some of them were counted before.
    """

    systems: tuple[str, ...]
    due_after: Micros = 0
    after: Micros = 0
    most: int = MOST_KEYS
    shares: dict[tuple[str, Micros], KnownShare] = field(default_factory=dict)
    left_out: int = 0
    _written: dict[Slot, Micros] = field(default_factory=dict)
    _pending: list[SampledLook] = field(default_factory=list)

    def changed(self, change: SampledChange) -> bool:
        """Take a change of a sampled key into the sample, if it was not counted before."""
        known = self._written.get(change.slot)
        if known is not None and change.written <= known:
            return False
        if change.written <= self.after:
            self.left_out += 1
            return False
        looks = [each for each in looks_of(change) if each.due > self.due_after]
        self._written[change.slot] = change.written
        for look in looks:
            if len(self._pending) < len(AGES) * self.most:
                heappush(self._pending, look)
            else:
                self.looked(look, {})
        if len(self._written) > self.most:
            self._forget()
        return bool(looks)

    def leave_out(self, number: int) -> None:
        """Count all looks at so many changes as not made: nothing else is known of them."""
        for place in product(self.systems, AGES):
            before = self.shares.get(place, KnownShare())
            self.shares[place] = replace(before, missing=before.missing + number)

    def _forget(self) -> None:
        """Forget the older half of the changes; what was written before is not counted again."""
        by_time = sorted(self._written.items(), key=itemgetter(1))
        kept = by_time[len(by_time) // 2 :]
        self.after = max(self.after, by_time[len(by_time) // 2 - 1][1])
        self._written = dict(kept)

    def due(self, now: Micros, most: int) -> list[SampledLook]:
        """The looks to make now (µs), at most so many; those that are too late are counted."""
        found: list[SampledLook] = []
        while self._pending and self._pending[0].due <= now and len(found) < most:
            look = heappop(self._pending)
            if look.is_too_late(now):
                self.looked(look, {})
            else:
                found.append(look)
        return found

    def looked(self, look: SampledLook, results: Mapping[str, SampleResult]) -> None:
        """Count a look's result by system. A system without a result was not looked at."""
        for system in self.systems:
            result = results.get(system, SampleResult.NOT_LOOKED_AT)
            if result in COUNTED:
                before = self.shares.get((system, look.age), KnownShare())
                self.shares[system, look.age] = COUNTED[result](before)
