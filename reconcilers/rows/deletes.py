"""Deletes that were received, or that are ours: values of lineage. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconcilers.words.model import KeyValue, Micros, Slot


@dataclass(frozen=True, slots=True)
class TruthDelete:
    """A delete of the truth; parts of the key that it did not name are None. ``at``: write time."""

    source: KeyValue
    key: tuple[KeyValue | None, ...]
    at: Micros


@dataclass(frozen=True, slots=True)
class ProjectionDelete:
    """A delete of a projection row, ``at`` its write time."""

    slot: Slot
    at: Micros


@dataclass(frozen=True, slots=True)
class OwnDelete:
    """A delete of a projection row that the reconciler itself sends, ``at`` its write time.

    ``sent_at`` (µs, our clock): the row has ended by then, unless the listing has it still.
    """

    slot: Slot
    at: Micros
    sent_at: Micros


@dataclass(frozen=True, slots=True)
class RowDeletes:
    """Deletes of one projection row (µs): the write times of those received, ours not among them.

    ``sent`` is when we last sent one.
    """

    received: frozenset[Micros] = frozenset()
    sent: Micros | None = None

    @property
    def ends(self) -> frozenset[Micros]:
        """When the row may have gone."""
        return self.received if self.sent is None else self.received | {self.sent}


NO_DELETES = RowDeletes()


@dataclass(frozen=True, slots=True)
class Deletes:
    """Write times (µs) of truth deletes of a source in a group: of those that named a slot by it.

    ``ranges`` are the times of the others.
    """

    ranges: frozenset[Micros] = frozenset()
    by_slot: Mapping[Slot, frozenset[Micros]] = field(default_factory=dict)


def deletes_of(seen: Iterable[tuple[tuple[KeyValue | None, ...], Micros]]) -> Deletes:
    """Truth deletes of one source in one group, each by the key that it named and its time (µs)."""
    ranges: set[Micros] = set()
    by_slot: dict[Slot, set[Micros]] = {}
    for key, at in seen:
        parts = [part for part in key if part is not None]
        times = ranges if len(parts) < len(key) else by_slot.setdefault(Slot(*parts), set())
        times.add(at)
    return Deletes(frozenset(ranges), {slot: frozenset(at) for slot, at in by_slot.items()})


def separate(deletes: Iterable[Micros], delay: Micros) -> int:
    """How many deletes these write times (µs) are at least: one that was sent again is one.

    James sends it again for up to 31 s, with new write times; with the difference of clocks that is
    less than ``delay``, D (µs).
    """
    count, first = 0, -(2**63)
    for at in sorted(deletes):
        if not count or at > first + delay:
            count, first = count + 1, at
    return count
