"""Listing rows that are left for one reason, as members of one finding (the port)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from reconcilers.declared.family import Family
from reconcilers.sweep.lost_rows import LostRow
from reconcilers.words.model import Slot


class LostRowsStore(Protocol):
    """One entry for each slot of a family's listing."""

    def at(self, family: Family, slots: Iterable[Slot]) -> dict[Slot, LostRow]:
        """The rows that are left at these slots."""

    def keep(self, family: Family, rows: Iterable[LostRow]) -> None:
        """Store rows as left, replacing earlier ones; durable when this returns."""

    def all(self, family: Family) -> Iterator[LostRow]:
        """All left rows of a family, in pages, unordered."""

    def forget(self, family: Family, slots: Iterable[Slot]) -> None:
        """Remove these slots: their rows are no longer left."""
