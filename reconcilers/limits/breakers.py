"""The circuit breakers: how many differences are believable. Pure.

The breaker counts suspects *before* anything is written. While it is open, observing goes on and
what would have been repaired is held. Removals have their own, lower limits; so have corrections of
counters, which count for nothing else. It never closes by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from zlib import crc32

from reconcilers.limits.ceiling import MINUTE
from reconcilers.words.model import Kind, Micros, Suspect

SECOND: Micros = 1_000_000


class Breaker(StrEnum):
    """What can be paused: all repairs of rows, removals only, or corrections of counters."""

    REPAIRS = "repairs"
    REMOVALS = "removals"
    CORRECTIONS = "corrections"


OF_ROWS = frozenset({Breaker.REPAIRS, Breaker.REMOVALS})
"""Those that the suspects of slices open."""
OF_COUNTERS = frozenset({Breaker.CORRECTIONS})


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """How much is believable: repairs a minute, and a share of the keys that have changed.

    The share is of the last minute, or of the last ``share_min_keys``, however long those took.
    ``opens`` is the breaker that suspects open; ``keys`` is what a sentence calls the keys.
    """

    suspects_per_minute: int = 1000
    suspect_share: float = 0.05
    removals_per_minute: int = 100
    removal_share: float = 0.01
    share_min_keys: int = 1000
    opens: Breaker = Breaker.REPAIRS
    keys: str = "keys"


@dataclass(frozen=True, slots=True)
class Count:
    """What one slice found: keys that had changed, suspects among them, removals among those.

    ``again`` are suspects that came back and may be written now, ``removals_again`` the removals
    among those. ``at`` is when its records were read (µs): what waited in Spark does not count as
    one burst, a backlog that is read from Kafka at once does. ``batch`` names the slice.
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
        """When what it opens is opened (µs): within a second of ``at``, the same at each execution.

        Pieces of one window were read at one moment. Each opens a breaker by a time of its own: a
        person who has closed the opening of one has not seen what the next one found.
        """
        return self.at + crc32(self.batch.encode()) % SECOND


def count_of(
    suspects: Iterable[Suspect],
    listing: str,
    examined: int,
    may_be_written: Callable[[Suspect], bool],
    batch: str,
    at: Micros,
) -> Count:
    """What a slice of so many keys found; ``listing`` names the list of messages.

    What agrees is no suspect, nor is what may not be written now. A removal from an index is no
    loss of mail, and is not counted as one. Only what has changed counts for the share: what comes
    back was counted when it was found.
    """
    found = list(suspects)
    wrong = [each for each in found if each.kind is not None and may_be_written(each)]
    new = [each for each in wrong if not each.looked_again]
    again = [each for each in wrong if each.looked_again]
    came_back = {each.slot for each in found if each.looked_again}
    return Count(
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
    """Which breakers are open, why, and the counts of the last minute and of the last keys."""

    opened: dict[Breaker, str] = field(default_factory=dict)
    recent: tuple[Count, ...] = ()


def after_batch(state: BreakerState, count: Count, limits: BreakerLimits) -> BreakerState:
    """The state that decides on this very batch: one over the limit is not repaired.

    A batch that is executed again has the same name, and counts once: with what it found at first,
    for by now some of that is repaired.
    """
    again = [each for each in state.recent if each.batch == count.batch]
    before = [each for each in state.recent if each.batch != count.batch]
    recent = _kept((*before, _most([*again, count])), limits.share_min_keys)
    opened = dict(state.opened)
    for breaker, reason in _excesses(recent, limits):
        opened.setdefault(breaker, reason)
    return BreakerState(opened, recent)


def _kept(counts: Sequence[Count], keys: int) -> tuple[Count, ...]:
    """Those of the last minute, and before it as many as it takes to have so many keys."""
    last = counts[-1].at
    kept: list[Count] = []
    missing = keys
    for each in reversed(counts):
        within = abs(each.at - last) < MINUTE
        if within or (missing > 0 and each.keys):
            kept.append(each)
            missing -= each.keys
    return tuple(reversed(kept))


def _most(counts: Sequence[Count]) -> Count:
    """One batch, of which each execution found a part."""
    return replace(
        counts[-1],
        keys=max(each.keys for each in counts),
        suspects=max(each.suspects for each in counts),
        removals=max(each.removals for each in counts),
        again=max(each.again for each in counts),
        removals_again=max(each.removals_again for each in counts),
    )


def _excesses(recent: tuple[Count, ...], limits: BreakerLimits) -> Iterable[tuple[Breaker, str]]:
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


def _span(recent: Sequence[Count]) -> str:
    """How long these took, in words."""
    times = [each.at for each in recent]
    minutes = (max(times) - min(times)) // MINUTE
    return f"in {minutes + 1} minutes" if minutes else "in a minute"
