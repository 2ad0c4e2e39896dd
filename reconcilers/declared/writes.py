"""The only things that step 6 can send, as values: one that names a truth cannot be built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from reconcilers.declared.family import Projection
from reconcilers.declared.tally import Sums, Tally
from reconcilers.words.errors import NotGuarded
from reconcilers.words.model import NEVER_WRITTEN, Micros, Slot, Value


@dataclass(frozen=True, slots=True)
class Write:
    """A guarded write to one row of a projection. Only `plan` and `undo` build them.

    ``at`` is the write timestamp (µs): the guard. Raises `NotGuarded` when the table is a truth
    table, or when there is no timestamp.
    """

    projection: Projection
    slot: Slot
    at: Micros

    def __post_init__(self) -> None:
        """Refuse what promise 1 and promise 2 forbid."""
        if self.projection.table in NEVER_WRITTEN:
            raise NotGuarded(f"{self.projection.table} holds the truth: it is never written")
        if self.at <= 0:
            raise NotGuarded(f"a write to {self.projection.table} needs its guard timestamp")


@dataclass(frozen=True, slots=True)
class SetCells(Write):
    """Set the named cells (None clears one). An UPDATE: it leaves no row marker behind."""

    cells: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class AddToSet(Write):
    """Add elements to a set column; never an overwrite, which would kill users' elements."""

    column: str
    elements: frozenset[str]


@dataclass(frozen=True, slots=True)
class RemoveFromSet(Write):
    """Remove elements from a set column."""

    column: str
    elements: frozenset[str]


@dataclass(frozen=True, slots=True)
class AddRow(Write):
    """Add a row that is nothing but its key."""


@dataclass(frozen=True, slots=True)
class DeleteRow(Write):
    """Delete the row as it was seen: what is written later survives."""


@dataclass(frozen=True, slots=True)
class AddToCounter:
    """Add to counters of one row of a tally: ``key`` is the row's, ``slot`` its finding's.

    It has no timestamp. Its guard is the ``round``, which one lightweight transaction claims: it is
    sent once. Raises `NotGuarded` without one.
    """

    tally: Tally
    slot: Slot
    key: UUID | str
    round: int
    deltas: Sums

    def __post_init__(self) -> None:
        """Refuse a delta that nobody claimed."""
        if self.round <= 0:
            raise NotGuarded(f"a delta to {self.tally.table} needs its round")
