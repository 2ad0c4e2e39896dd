"""The fake of `checkpoints.lost_rows`, in this process's memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcilers.declared.family import Family
from reconcilers.sweep.lost_rows import LostRow
from reconcilers.words.model import Slot


class MemoryLostRows:
    """`checkpoints.lost_rows.LostRowsStore` in a dictionary."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, Slot], LostRow] = {}

    def at(self, family: Family, slots: Iterable[Slot]) -> dict[Slot, LostRow]:
        places = ((slot, self._rows.get((family.name, slot))) for slot in slots)
        return {slot: row for slot, row in places if row is not None}

    def keep(self, family: Family, rows: Iterable[LostRow]) -> None:
        self._rows |= {(family.name, each.slot): each for each in rows}

    def all(self, family: Family) -> Iterator[LostRow]:
        yield from [row for (name, _), row in self._rows.items() if name == family.name]

    def forget(self, family: Family, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self._rows.pop((family.name, slot), None)
