"""The circuit breakers: how many differences are believable. Pure.

A breaker counts suspects *before* anything is written. While it is open, the stream observes, and
repairs are held. Removals have lower limits of their own. Corrections of counters have limits of
their own, and count for no other breaker. A breaker never closes automatically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple
from zlib import crc32

from reconcilers.limits.ceiling import MINUTE
from reconcilers.words.model import Kind, Micros, Suspect

SECOND: Micros = 1_000_000


class Breaker(StrEnum):
    """What a breaker stops: all repairs of rows, removals only, or corrections of counters."""

    REPAIRS = "repairs"
    REMOVALS = "removals"
    CORRECTIONS = "corrections"


class Opening(NamedTuple):
    """One opening of a breaker, ``at`` a time (µs)."""

    breaker: Breaker
    at: Micros
    reason: str


def first_reasons(openings: Sequence[Opening]) -> dict[Breaker, str]:
    """Each open breaker with the reason of its first opening; ``openings`` are oldest first."""
    first = {each.breaker: each.reason for each in reversed(openings)}
    return dict(sorted(first.items()))


OF_ROWS = frozenset({Breaker.REPAIRS, Breaker.REMOVALS})
"""The breakers that the suspects of slices open."""
OF_COUNTERS = frozenset({Breaker.CORRECTIONS})


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """How much is believable: repairs a minute, and a share of the keys that have changed.

    The share is of the last minute, or of the last ``share_min_keys`` if those took longer.
    ``opens`` is the breaker that suspects open. ``keys`` is the noun for the keys in a sentence.
    """

    suspects_per_minute: int = 1000
    suspect_share: float = 0.05
    removals_per_minute: int = 100
    removal_share: float = 0.01
    share_min_keys: int = 1000
    opens: Breaker = Breaker.REPAIRS
    keys: str = "keys"


@dataclass(frozen=True, slots=True)
class SliceCount:
    """What one slice found: changed keys, suspects among them, and removals among those.

    ``again`` are suspects that came back and may be written now, ``removals_again`` the removals
    among those. ``at`` is when its records were read (µs): a backlog in Spark is no burst, a
    backlog that is read from Kafka at once is one. ``batch`` names the slice.
    """

    batch: str
    at: Micros
    keys: int
    suspects: int
    removals: int
    again: int = 0
    removals_again: int = 0

    @property
    def opens_at(self) -> Micros:
        """When its breaker opens (µs): within a second of ``at``, equal at each execution.

        Pieces of one window were read at one moment, but each opens a breaker at its own time. A
        person who closes one opening has not seen what the next piece found.
        """
        return self.at + crc32(self.batch.encode()) % SECOND

    def and_new(self, counts: Mapping[tuple[str, Kind], int], listing: str) -> SliceCount:
        """The count with so many new suspects more, by projection and kind."""
        removals = counts.get((listing, Kind.EXTRA_ROW), 0)
        return replace(
            self,
            suspects=self.suspects + sum(counts.values()),
            removals=self.removals + removals,
        )


def count_of(
    suspects: Iterable[Suspect],
    listing: str,
    examined: int,
    may_be_written: Callable[[Suspect], bool],
    batch: str,
    at: Micros,
) -> SliceCount:
    """The count of a slice with ``examined`` keys; ``listing`` names the listing.

    A suspect that agrees or that may not be written now does not count. A removal from an index
    loses no mail, so it is no removal here. A key that comes back was counted in the share when it
    was found.
    """
    found = list(suspects)
    wrong = [each for each in found if each.kind is not None and may_be_written(each)]
    new = [each for each in wrong if not each.looked_again]
    again = [each for each in wrong if each.looked_again]
    came_back = {each.slot for each in found if each.looked_again}
    return SliceCount(
        batch,
        at,
        max(examined - len(came_back), 0),
        len(new),
        _removals(new, listing),
        len(again),
        _removals(again, listing),
    )


def _removals(suspects: Iterable[Suspect], listing: str) -> int:
    return sum(each.kind is Kind.EXTRA_ROW and each.projection == listing for each in suspects)


@dataclass(frozen=True, slots=True)
class BreakerState:
    """The open breakers with their reasons, and the counts of the last minute and last keys."""

    opened: dict[Breaker, str] = field(default_factory=dict)
    recent: tuple[SliceCount, ...] = ()


def after_batch(state: BreakerState, count: SliceCount, limits: BreakerLimits) -> BreakerState:
    """The state that decides on this very batch: a batch over the limit is not repaired.

    A batch that is executed again has the same name and counts once, by the highest numbers: some
    of what it found first is repaired by now.
    """
    again = [each for each in state.recent if each.batch == count.batch]
    before = [each for each in state.recent if each.batch != count.batch]
    recent = _kept((*before, _most([*again, count])), limits.share_min_keys)
    opened = dict(state.opened)
    for breaker, reason in _excesses(recent, limits):
        opened.setdefault(breaker, reason)
    return BreakerState(opened, recent)


def _kept(counts: Sequence[SliceCount], keys: int) -> tuple[SliceCount, ...]:
    """The counts of the last minute, and as many before it as have this number of keys."""
    last = counts[-1].at
    kept: list[SliceCount] = []
    missing = keys
    for each in reversed(counts):
        within = abs(each.at - last) < MINUTE
        if within or (missing > 0 and each.keys):
            kept.append(each)
            missing -= each.keys
    return tuple(reversed(kept))


def _most(counts: Sequence[SliceCount]) -> SliceCount:
    """One batch with the highest number of each execution."""
    return replace(
        counts[-1],
        keys=max(each.keys for each in counts),
        suspects=max(each.suspects for each in counts),
        removals=max(each.removals for each in counts),
        again=max(each.again for each in counts),
        removals_again=max(each.removals_again for each in counts),
    )


def _excesses(
    recent: tuple[SliceCount, ...], limits: BreakerLimits
) -> Iterable[tuple[Breaker, str]]:
    last = recent[-1].at
    minute = [each for each in recent if abs(each.at - last) < MINUTE]
    checks = (
        (
            limits.opens,
            sum(each.suspects + each.again for each in minute),
            limits.suspects_per_minute,
            sum(each.suspects for each in recent),
            limits.suspect_share,
        ),
        (
            Breaker.REMOVALS,
            sum(each.removals + each.removals_again for each in minute),
            limits.removals_per_minute,
            sum(each.removals for each in recent),
            limits.removal_share,
        ),
    )
    keys = sum(each.keys for each in recent)
    for breaker, written, per_minute, found, share in checks:
        if written > per_minute:
            yield breaker, f"{written} in a minute, the limit is {per_minute}"
        elif keys >= limits.share_min_keys and found > share * keys:
            told = f"{found} of {keys} {limits.keys} {_span(recent)}, the limit is {share:.1%}"
            yield breaker, told


def _span(recent: Sequence[SliceCount]) -> str:
    times = [each.at for each in recent]
    minutes = (max(times) - min(times)) // MINUTE
    return f"in {minutes + 1} minutes" if minutes else "in a minute"
