"""What may be repaired: the circuit breaker, and the refusal of a single repair. Pure.

The breaker counts suspects *before* anything is written. While it is open, observing goes on and
what would have been repaired is held. Removals have their own, lower limits. It never closes by
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from reconcilers.ceiling import MINUTE, Ceiling
from reconcilers.family import Family, Projection
from reconcilers.finding import State
from reconcilers.model import Kind, Micros, Repair, Suspect


class Breaker(StrEnum):
    """What can be paused: all repairs, or removals only."""

    REPAIRS = "repairs"
    REMOVALS = "removals"


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """How many suspects are believable: a number a minute, or a share of enough keys."""

    suspects_per_minute: int = 1000
    suspect_share: float = 0.05
    removals_per_minute: int = 100
    removal_share: float = 0.01
    share_min_keys: int = 1000


@dataclass(frozen=True, slots=True)
class Count:
    """What one slice found: keys examined, suspects among them, removals among those.

    ``at`` is when its records were read (µs): what waited in Spark does not count as one burst, a
    backlog that is read from Kafka at once does. ``batch`` names the slice.
    """

    batch: str
    at: Micros
    keys: int
    suspects: int
    removals: int


def count_of(suspects: Iterable[Suspect], listing: str, keys: int, batch: str, at: Micros) -> Count:
    """What a batch of ``keys`` found; ``listing`` names the list of messages.

    What is looked at again was counted when it was found; what agrees is no suspect. A removal from
    an index is no loss of mail, and is not counted as one.
    """
    new = [suspect for suspect in suspects if suspect.kind and not suspect.looked_again]
    removals = sum(each.kind is Kind.EXTRA_ROW and each.projection == listing for each in new)
    return Count(batch, at, keys, len(new), removals)


@dataclass(frozen=True, slots=True)
class BreakerState:
    """Which breakers are open, why, and the counts of the last minute."""

    opened: dict[Breaker, str] = field(default_factory=dict)
    recent: tuple[Count, ...] = ()


def after_batch(state: BreakerState, count: Count, limits: BreakerLimits) -> BreakerState:
    """The state that decides on this very batch: one over the limit is not repaired.

    A batch that is executed again has the same name, and counts once: with what it found at first,
    for by now some of that is repaired.
    """
    again = [each for each in state.recent if each.batch == count.batch]
    before = [
        each
        for each in state.recent
        if abs(each.at - count.at) < MINUTE and each.batch != count.batch
    ]
    recent = (*before, _most([*again, count]))
    opened = dict(state.opened)
    for breaker, reason in _excesses(recent, limits):
        opened.setdefault(breaker, reason)
    return BreakerState(opened, recent)


def _most(counts: Sequence[Count]) -> Count:
    """One batch, of which each execution found a part."""
    return replace(
        counts[-1],
        keys=max(each.keys for each in counts),
        suspects=max(each.suspects for each in counts),
        removals=max(each.removals for each in counts),
    )


def _excesses(recent: tuple[Count, ...], limits: BreakerLimits) -> Iterable[tuple[Breaker, str]]:
    keys = sum(count.keys for count in recent)
    checks = (
        (
            Breaker.REPAIRS,
            sum(count.suspects for count in recent),
            limits.suspects_per_minute,
            limits.suspect_share,
        ),
        (
            Breaker.REMOVALS,
            sum(count.removals for count in recent),
            limits.removals_per_minute,
            limits.removal_share,
        ),
    )
    for breaker, found, per_minute, share in checks:
        if found > per_minute:
            yield breaker, f"{found} in a minute, the limit is {per_minute}"
        elif keys >= limits.share_min_keys and found > share * keys:
            yield breaker, f"{found} of {keys} keys in a minute, the limit is {share:.1%}"


# --- one repair


@dataclass(frozen=True, slots=True)
class Admission:
    """What the driver lets through for this batch: None, or why not.

    ``ceiling`` says how many repairs may be written, where that has a limit.
    ``on_memory`` is for repairs that are right only if no event of theirs is still to come.
    """

    repairs: str | None = None
    removals: str | None = None
    observe: bool = False
    on_memory: str | None = None
    ceiling: Ceiling | None = None

    def shared(self, sizes: Sequence[int]) -> list[Admission]:
        """What is let through for each share of the batch; ``sizes`` are their suspects."""
        if self.ceiling is None:
            return [self] * len(sizes)
        return [replace(self, ceiling=each) for each in self.ceiling.shared(sizes)]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A repair that is not carried out: its finding's state and kind, and why.

    ``reason`` is the end of a sentence, None when the stream only observes.
    """

    state: State
    kind: Kind
    reason: str | None = None


def refusal(
    repair: Repair,
    family: Family,
    projection: Projection,
    admission: Admission,
    may_lose_rows: Callable[[], bool],
) -> Refusal | None:
    """Why a repair is not carried out now, None when it is.

    ``may_lose_rows`` answers for the group (mailbox) of a row that is to be removed. It is asked
    last, and only for a removal that would else be carried out: it reads the whole group.
    """
    kind = repair.difference.kind
    removal = kind is Kind.EXTRA_ROW and not projection.is_index
    waits = admission.on_memory if repair.rests_on_memory else None
    held = admission.repairs or (admission.removals if removal else None) or waits
    if admission.observe:
        return Refusal(State.OBSERVED, kind, waits and f"would be held: {waits}")
    if held is not None:
        return Refusal(State.HELD, kind, f"held: {held}")
    if removal and not may_lose_rows():
        why = f"but no row of this {family.group.label} has its truth: held for a person"
        return Refusal(State.REPORTED, Kind.MAILBOX_WITHOUT_TRUTH, why)
    return None
