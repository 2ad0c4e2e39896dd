"""A model of how Cassandra keeps the rows of one table: cells with write times, and tombstones.

No replicas, no expiry: what a read at quorum sees. `tests/contract/test_cells.py` holds it against
the real server. The rules:

* of two cells the newer wins; at equal times a tombstone beats a value, then the greater bytes win;
* a delete (of a row, a clustering prefix, a partition) hides what is not newer than it;
* INSERT leaves a row marker, UPDATE does not; a row shows while its marker or a cell of it lives;
* a set is kept element by element; overwriting one is a tombstone at t − 1 and elements at t;
* a null cell and a set have no write time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import assert_never
from uuid import UUID

from reconcilers.declared.writes import AddRow, AddToSet, DeleteRow, RemoveFromSet, SetCells, Write
from reconcilers.words.model import KeyValue, Micros, Row, Value

Key = tuple[KeyValue, ...]
Elements = Mapping[str, frozenset[str]]
NO_ELEMENTS: Elements = MappingProxyType({})
NEVER: Micros = -1


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT: leaves a row marker; a set among the cells is overwritten."""

    key: Key
    at: Micros
    cells: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE: a set among the cells is overwritten, ``added`` and ``removed`` are element-wise."""

    key: Key
    at: Micros
    cells: Mapping[str, Value]
    added: Elements = field(default_factory=dict)
    removed: Elements = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE by the whole key, by a clustering prefix, or by the partition."""

    prefix: Key
    at: Micros


Statement = Insert | Update | Delete


@dataclass(slots=True)
class StoredRow:
    """What is kept of one row; a value of None is a tombstone, an element's False one too."""

    marker: Micros = NEVER
    cells: dict[str, tuple[Micros, Value]] = field(default_factory=dict)
    elements: dict[str, dict[str, tuple[Micros, bool]]] = field(default_factory=dict)
    emptied: dict[str, Micros] = field(default_factory=dict)


@dataclass(slots=True)
class Table:
    """One table; the first column of ``key`` is the partition's, as in all of James's tables."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    sets: tuple[str, ...]
    stored: dict[Key, StoredRow] = field(default_factory=dict)
    deleted: dict[Key, Micros] = field(default_factory=dict)
    _shown: dict[Key, Row | None] = field(default_factory=dict)
    """What was read since the last statement."""

    def apply(self, statement: Statement) -> None:
        """Take a statement in; the order of application does not matter, only write times do."""
        self._shown.clear()
        match statement:
            case Delete(prefix, at):
                self.deleted[prefix] = max(at, self.deleted.get(prefix, NEVER))
            case Insert(key, at, cells):
                row = self._row(key)
                row.marker = max(row.marker, at)
                self._set_cells(row, at, cells)
            case Update(key, at, cells, added, removed):
                row = self._row(key)
                self._set_cells(row, at, cells)
                _set_elements(row, at, added, alive=True)
                _set_elements(row, at, removed, alive=False)
            case _:
                assert_never(statement)

    def read(self, key: Key) -> Row | None:
        """The row as the driver gives it with write times, None when it does not show."""
        if key not in self._shown:
            self._shown[key] = self._read(key)
        return self._shown[key]

    def _read(self, key: Key) -> Row | None:
        stored = self.stored.get(key)
        if stored is None:
            return None
        since = self.deleted_at(key)
        live = {
            name: (at, value)
            for name, (at, value) in stored.cells.items()
            if at > since and value is not None
        }
        sets = {name: _alive(stored, name, since) for name in self.sets}
        if not live and stored.marker <= since and not any(sets.values()):
            return None
        cells: dict[str, Value] = dict.fromkeys(self.columns)
        cells.update(zip(self.key, key, strict=True))
        cells.update((name, value) for name, (_, value) in live.items())
        cells.update(sets)
        return Row(cells, {name: at for name, (at, _) in live.items()})

    def rows(self, *prefix: KeyValue) -> Iterator[tuple[Key, Row]]:
        """The rows that show under a prefix of the key."""
        for key in list(self.stored):
            if key[: len(prefix)] == prefix and (row := self.read(key)) is not None:
                yield key, row

    def deleted_at(self, key: Key) -> Micros:
        """The newest delete that covers this key, `NEVER` where there is none."""
        if not self.deleted:
            return NEVER
        return max([self.deleted.get(key[:length], NEVER) for length in range(1, len(key) + 1)])

    def _row(self, key: Key) -> StoredRow:
        return self.stored.setdefault(key, StoredRow())

    def _set_cells(self, row: StoredRow, at: Micros, cells: Mapping[str, Value]) -> None:
        for name, value in cells.items():
            if name in self.sets:
                row.emptied[name] = max(at - 1, row.emptied.get(name, NEVER))
                elements = value if isinstance(value, frozenset) else frozenset()
                _set_elements(row, at, {name: elements}, alive=True)
            elif name not in row.cells or _beats((at, value), row.cells[name]):
                row.cells[name] = (at, value)


def statement_of(write: Write) -> Statement:
    """The statement that one of the product's writes stands for."""
    key = write.slot.key
    match write:
        case AddRow():
            return Insert(key, write.at, {})
        case SetCells():
            return Update(key, write.at, write.cells)
        case AddToSet():
            return Update(key, write.at, {}, added={write.column: write.elements})
        case RemoveFromSet():
            return Update(key, write.at, {}, removed={write.column: write.elements})
        case DeleteRow():
            return Delete(key, write.at)
    raise AssertionError(f"a write that the model does not know: {write}")


def _set_elements(row: StoredRow, at: Micros, elements: Elements, *, alive: bool) -> None:
    for name, members in elements.items():
        kept = row.elements.setdefault(name, {})
        for member in members:
            there = kept.get(member)
            if there is None or at > there[0] or (at == there[0] and not alive):
                kept[member] = (at, alive)


def _alive(row: StoredRow, name: str, since: Micros) -> frozenset[str]:
    elements = row.elements.get(name)
    if not elements:
        return frozenset()
    limit = max(since, row.emptied.get(name, NEVER))
    return frozenset(member for member, (at, alive) in elements.items() if alive and at > limit)


def _beats(new: tuple[Micros, Value], old: tuple[Micros, Value]) -> bool:
    if new[0] != old[0]:
        return new[0] > old[0]
    if new[1] is None or old[1] is None:
        return new[1] is None
    return _bytes(new[1]) > _bytes(old[1])


def _bytes(value: Value) -> bytes:
    """The value as Cassandra stores it: ties are decided by unsigned comparison of these."""
    match value:
        case bool():
            return bytes([value])
        case int():
            return struct.pack(">q", value)
        case str():
            return value.encode()
        case UUID():
            return value.bytes
    raise AssertionError(f"no plain cell holds {value!r}")
