"""The declaration of a table that holds the truth. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from reconcilers.words.key import KeyColumn
from reconcilers.words.model import KeyValue, Row, Slot

PARTS = (UUID, int, str)
"""The Python types of a part of a key."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Stored content of a source that cannot be understood, and why."""

    reason: str


Derived = tuple[Row, ...] | Malformed
"""The truth rows of one source."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """How the truth rows of a source follow from the rows of its partition.

    ``key`` are the partition's clustering columns and ``reads`` the further columns that are read.
    ``gives`` are the columns of a truth row beside the slot's. ``rows`` is pure. A truth row's
    write times are those of what it was derived from.
    """

    key: tuple[str, ...]
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    rows: Callable[[KeyValue, Sequence[Row]], Derived]


@dataclass(frozen=True, slots=True)
class TruthTable:
    """A table that holds the truth.

    ``source`` is its partition key (a message). ``slot`` are the columns that lead to the
    projection rows. A row without one of the ``required`` columns is incomplete: it is reported and
    never copied. Counters count it if it has the ``summed`` columns. ``contents`` are the tables
    with a source's content by its id, older ones first. ``sets`` are its set columns; see `bind`.
    ``derive``: its truth rows are derived from its own; ``slot`` and ``required`` are then columns
    of the derived ones. None: they are its own rows.
    """

    table: str
    source: KeyColumn
    slot: tuple[str, ...]
    required: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    sets: frozenset[str] = frozenset()
    derive: Derivation | None = None

    def rows_of(self, source: KeyValue, stored: Sequence[Row]) -> Derived:
        """The truth rows of a source, given all rows of its partition."""
        return tuple(stored) if self.derive is None else self.derive.rows(source, stored)

    def slot_of(self, row: Row) -> Slot:
        """The slot of a row of this table. Raises ValueError if a part of the key is missing."""
        cells = [row.cells.get(column) for column in self.slot]
        parts = [cell for cell in cells if isinstance(cell, PARTS)]
        if len(parts) < len(cells):
            raise ValueError(f"a row of {self.table} without {', '.join(self.slot)}")
        return Slot(*parts)
