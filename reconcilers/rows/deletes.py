"""Received deletes and our own deletes, as lineage stores them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconcilers.words.model import KeyValue, Micros, Slot


@dataclass(frozen=True, slots=True)
class TruthDelete:
    """A delete of the truth; key parts that it did not name are None. ``at``: write time (µs)."""

    source: KeyValue
    key: tuple[KeyValue | None, ...]
    at: Micros


@dataclass(frozen=True, slots=True)
class ProjectionDelete:
    """A delete of a projection row; ``at`` is its write time (µs)."""

    slot: Slot
    at: Micros


@dataclass(frozen=True, slots=True)
class OwnDelete:
    """A delete of a projection row by the reconciler; ``at`` is its write time (µs).

    ``sent_at`` (µs, our clock): the row has gone by then, unless the listing still has it.
    """

    slot: Slot
    at: Micros
    sent_at: Micros


@dataclass(frozen=True, slots=True)
class RowDeletes:
    """Write times (µs) of received deletes of a row, without ours; ``sent``: our last one (µs)."""

    received: frozenset[Micros] = frozenset()
    sent: Micros | None = None

    @property
    def ends(self) -> frozenset[Micros]:
        """When the row may have gone (µs)."""
        return self.received if self.sent is None else self.received | {self.sent}


NO_DELETES = RowDeletes()


@dataclass(frozen=True, slots=True)
class Deletes:
    """Write times (µs) of a source's truth deletes in a group: ``by_slot`` if they named one.

    ``ranges`` are the times of the others.
    """

    ranges: frozenset[Micros] = frozenset()
    by_slot: Mapping[Slot, frozenset[Micros]] = field(default_factory=dict)


def deletes_of(seen: Iterable[tuple[tuple[KeyValue | None, ...], Micros]]) -> Deletes:
    """The truth deletes of one source in one group, given by named key and time (µs)."""
    ranges: set[Micros] = set()
    by_slot: dict[Slot, set[Micros]] = {}
    for key, at in seen:
        parts = [part for part in key if part is not None]
        times = ranges if len(parts) < len(key) else by_slot.setdefault(Slot(*parts), set())
        times.add(at)
    return Deletes(frozenset(ranges), {slot: frozenset(at) for slot, at in by_slot.items()})


def separate(deletes: Iterable[Micros], delay: Micros) -> int:
    """The least number of deletes that these write times (µs) are.

    James repeats a delete for up to 31 s, with new write times. ``delay``, D (µs), is longer than
    that and the difference of clocks together.
    """
    count, first = 0, -(2**63)
    for at in sorted(deletes):
        if not count or at > first + delay:
            count, first = count + 1, at
    return count
