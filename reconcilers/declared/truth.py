"""The declaration of a table that holds the truth. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from reconcilers.words.key import KeyColumn
from reconcilers.words.model import Row, Slot

PARTS = (UUID, int, str)
"""The Python types of a part of a key."""


@dataclass(frozen=True, slots=True)
class TruthTable:
    """A table that holds the truth.

    ``source`` is its partition key (a message). ``slot`` are the columns that lead to the
    projection rows. A row without one of the ``required`` columns is incomplete: it is reported and
    never copied. Counters count it if it has the ``summed`` columns. ``contents`` are the tables
    with a source's content by its id, older ones first. ``sets`` are its set columns; see `bind`.
    """

    table: str
    source: KeyColumn
    slot: tuple[str, ...]
    required: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    sets: frozenset[str] = frozenset()

    def slot_of(self, row: Row) -> Slot:
        """The slot of a row of this table. Raises ValueError if a part of the key is missing."""
        cells = [row.cells.get(column) for column in self.slot]
        parts = [cell for cell in cells if isinstance(cell, PARTS)]
        if len(parts) < len(cells):
            raise ValueError(f"a row of {self.table} without {', '.join(self.slot)}")
        return Slot(*parts)
