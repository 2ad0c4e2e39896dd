"""What the users' writes allow a cell to be: a model of cells of which the last write wins. Pure.

A write with an unknown outcome may have been applied. A lightweight transaction has the time of a
server's clock: some moment of the span in which it ran, or later if its outcome is unknown.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from deploy.nemesis.history import UserOutcome, UserWrite
from deploy.nemesis.statement import UserWriteKind
from deploy.nemesis.tables import MARKER, Held, JsonValue, RowId, element_name

FOREVER = sys.maxsize
CellPlace = tuple[str, RowId, str]
"""A cell: its table, the key of its row, its name."""


@dataclass(frozen=True, slots=True)
class Put:
    """What one write makes of one cell: its value (None: deleted), at a time (µs) between two.

    `certain`: it was acknowledged. `begun` and `ended` (µs) are the span of a lightweight
    transaction; those of other writes say nothing of their order.
    """

    value: JsonValue
    earliest: int
    latest: int
    certain: bool
    write: int = 0
    begun: int = 0
    ended: int = FOREVER

    def is_surely_after(self, other: "Put", time: int | None) -> bool:
        """Whether it is newer than the other, whose write time is known or not."""
        if self.earliest > (other.latest if time is None else time):
            return True
        return self.begun > other.ended


NEVER = Put(None, -1, -1, certain=True)
"""Every cell before its first write."""


class ByUsers(IntEnum):
    """Whether users' writes explain a cell."""

    NO = 0
    MAYBE = 1
    """They do if a write with an unknown outcome was applied."""
    YES = 2


def explained(puts: Sequence[Put], held: Held) -> ByUsers:
    """Whether these writes, and nothing else, can have left the cell like this."""
    certain = [put for put in puts if put.certain]
    if _can_hold([NEVER, *certain], certain, held):
        return ByUsers.YES
    return ByUsers.MAYBE if _can_hold(puts, certain, held) else ByUsers.NO


def _can_hold(puts: Iterable[Put], certain: Sequence[Put], held: Held) -> bool:
    return any(
        put.value == held.value
        and (held.time is None or put.earliest <= held.time <= put.latest)
        and not any(
            newer.value != held.value and newer.is_surely_after(put, held.time) for newer in certain
        )
        for put in puts
    )


class UserCells:
    """All cells that the users of a history wrote, and when.

    `skew_us` is how far a server's clock may be from this machine's: it widens the span of a
    lightweight transaction on both sides.
    """

    def __init__(self, history: Iterable[UserWrite], skew_us: int) -> None:
        self._skew_us = skew_us
        self._puts: defaultdict[tuple[str, RowId], defaultdict[str, list[Put]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._deletes: defaultdict[tuple[str, RowId], list[Put]] = defaultdict(list)
        self._replaced: defaultdict[CellPlace, list[Put]] = defaultdict(list)
        for write in history:
            if write.answer.outcome is not UserOutcome.FAILED:
                self._add(write)

    def rows(self, table: str) -> set[RowId]:
        """The keys of all rows that users wrote."""
        return {key for name, key in self._puts if name == table}

    def names(self, table: str, key: RowId) -> set[str]:
        """The names of all cells of a row that users wrote."""
        return set(self._puts.get((table, key), {}))

    def puts(self, place: CellPlace) -> list[Put]:
        """The writes of a cell, with the deletes that cover it."""
        table, key, name = place
        found: list[Put] = []
        if (cells := self._puts.get((table, key))) is not None:
            found += cells.get(name, ())
        for length in range(1, len(key) + 1):
            found += self._deletes.get((table, key[:length]), ())
        column, _, element = name.partition(".")
        if element:
            found += self._replaced.get((table, key, column), ())
        return found

    def deletes(self, table: str, key: RowId) -> list[Put]:
        """The deletes of a whole row."""
        return list(self._deletes.get((table, key), ()))

    def _add(self, write: UserWrite) -> None:
        told = write.statement
        if told.kind is UserWriteKind.DELETE:
            self._deletes[told.table, told.key].append(self._put(write, None))
            return
        if told.kind is UserWriteKind.COUNT:
            return
        cells = self._puts[told.table, told.key]
        if told.kind is UserWriteKind.INSERT:
            cells[MARKER].append(self._put(write, True))
        for name, value in told.cells.items():
            cells[name].append(self._put(write, value))
        for column in told.replaced:
            emptied = self._put(write, None, before=1)
            self._replaced[told.table, told.key, column].append(emptied)
        for group, value in ((told.replaced, True), (told.added, True), (told.removed, None)):
            for column, elements in group.items():
                for element in elements:
                    cells[element_name(column, element)].append(self._put(write, value))

    def _put(self, write: UserWrite, value: JsonValue, before: int = 0) -> Put:
        """`before` is how many µs before the write it counts."""
        certain = write.answer.outcome is UserOutcome.OK
        time = write.answer.time or write.statement.time
        if time is not None:
            return Put(value, time - before, time - before, certain, write.number)
        ended = FOREVER
        if certain and write.ended is not None:
            ended = write.ended
        latest = ended if ended == FOREVER else ended + self._skew_us
        earliest = write.begun - self._skew_us - before
        return Put(value, earliest, latest, certain, write.number, write.begun, ended)
