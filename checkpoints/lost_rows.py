"""Rows of the listing that are left together, as members of one finding a reason (the port).

Implementations: `checkpoints.cassandra.CassandraLostRows` and `tests.fakes.checkpoints.lost_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from reconcilers.declared.family import Family
from reconcilers.sweep.lost_rows import LostRow
from reconcilers.words.model import Slot


class LostRowsStore(Protocol):
    """One row for each slot of a family's listing."""

    def at(self, family: Family, slots: Iterable[Slot]) -> dict[Slot, LostRow]:
        """Those that are left at these slots."""

    def keep(self, family: Family, rows: Iterable[LostRow]) -> None:
        """These are left: durable when this returns. Replaces what stands there."""

    def all(self, family: Family) -> Iterator[LostRow]:
        """All of a family, page by page, in no order."""

    def forget(self, family: Family, slots: Iterable[Slot]) -> None:
        """These are left no more."""
