"""The writes that step 6 can send. One that names a truth table cannot be built. Pure."""

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
    """A guarded write to one row of a projection. Only `plan` and `undo` build it.

    ``at`` is the write timestamp (µs): the guard. Raises `NotGuarded` if the table is a truth
    table, or if there is no timestamp.
    """

    projection: Projection
    slot: Slot
    at: Micros

    def __post_init__(self) -> None:
        if self.projection.table in NEVER_WRITTEN or self.projection.only_by:
            raise NotGuarded(f"{self.projection.table} holds the truth: it is never written")
        if self.at <= 0:
            raise NotGuarded(f"a write to {self.projection.table} needs its guard timestamp")


@dataclass(frozen=True, slots=True)
class SetCells(Write):
    """Set the named cells (None clears one), by an UPDATE, which leaves no row marker."""

    cells: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class AddToSet(Write):
    """Add elements to a set column. An overwrite would remove users' elements."""

    column: str
    elements: frozenset[str]


@dataclass(frozen=True, slots=True)
class RemoveFromSet(Write):
    """Remove elements from a set column."""

    column: str
    elements: frozenset[str]


@dataclass(frozen=True, slots=True)
class AddRow(Write):
    """Add a row that consists of its key."""


@dataclass(frozen=True, slots=True)
class DeleteRow(Write):
    """Delete the row as it was seen; cells that are written later survive."""


@dataclass(frozen=True, slots=True)
class AddToCounter:
    """Add to the counters of one row of a tally: ``key`` is the row's, ``slot`` its finding's.

    It has no timestamp. Its guard is ``round``, which one lightweight transaction claims, so it is
    sent once. Raises `NotGuarded` without a round.
    """

    tally: Tally
    slot: Slot
    key: UUID | str
    round: int
    deltas: Sums

    def __post_init__(self) -> None:
        if self.round <= 0:
            raise NotGuarded(f"a delta to {self.tally.table} needs its round")
