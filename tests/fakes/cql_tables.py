"""The tables of a fake CQL server: their columns, as CREATE statements declare them, and rows.

Cells are kept as Cassandra sends them, so that an answer is put together from bytes.
"""

from __future__ import annotations

import re
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

CREATED = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)\.(\w+) \(\n(.*)\n\)", re.DOTALL)
COLUMN = re.compile(r"    ([a-z]\w*) (.+?)( PRIMARY KEY)?,?$", re.MULTILINE)
PRIMARY = re.compile(r"^    PRIMARY KEY \((?:\(([^)]+)\)|(\w+))", re.MULTILINE)
CONDITION = re.compile(r"(\w+) ?(=|IN|>=|<=) ?('[^']*'|\?)")

Cell = bytes
"""A value with its length before it; the length is -1 where it is null."""
NULL: Cell = struct.pack(">i", -1)


TYPES: Mapping[str, tuple[int, Callable[[Any], bytes]]] = {
    "bigint": (0x02, lambda value: struct.pack(">q", value)),
    "counter": (0x05, lambda value: struct.pack(">q", value)),
    "boolean": (0x04, lambda value: bytes([value])),
    "int": (0x09, lambda value: struct.pack(">i", value)),
    "timestamp": (0x0B, lambda value: struct.pack(">q", round(value.timestamp() * 1000))),
    "uuid": (0x0C, lambda value: value.bytes),
    "text": (0x0D, str.encode),
    "timeuuid": (0x0F, lambda value: value.bytes),
}
"""The protocol's number of each plain type, and how a value of it is sent."""
OWNER, OWNER_FIELDS = "frozen<mailbox_base>", ("namespace", "user")
"""The user type of James's table `mailbox`."""


def cell(kind: str, value: object) -> Cell:
    """A value of a CQL type; an empty set is null, as Cassandra has no other."""
    if value is None or (kind.startswith(("set<", "map<")) and not value):
        return NULL
    body = _body(kind, value)
    return struct.pack(">i", len(body)) + body


def _body(kind: str, value: Any) -> bytes:
    if kind == "map<text, text>":
        flat = [part for pair in value.items() for part in pair]
        return struct.pack(">i", len(value)) + b"".join(cell("text", each) for each in flat)
    if kind == OWNER:
        return b"".join(cell("text", value[each]) for each in OWNER_FIELDS)
    if kind.startswith("set<"):
        inner = sorted(cell(kind[4:-1], each) for each in value)
        return struct.pack(">i", len(inner)) + b"".join(inner)
    return TYPES[kind][1](value)


def option(kind: str) -> bytes:
    """A type as the protocol names it in an answer's columns."""
    if kind == "map<text, text>":
        return struct.pack(">HHH", 0x21, TYPES["text"][0], TYPES["text"][0])
    if kind == OWNER:
        fields = b"".join(_name(each) + option("text") for each in OWNER_FIELDS)
        named = _name("mail") + _name("mailbox_base")
        return struct.pack(">H", 0x30) + named + struct.pack(">H", len(OWNER_FIELDS)) + fields
    for name, number in (("list<", 0x20), ("set<", 0x22)):
        if kind.startswith(name):
            return struct.pack(">H", number) + option(kind.removeprefix(name)[:-1])
    return struct.pack(">H", TYPES[kind][0])


def _name(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


@dataclass
class FakeTable:
    """One table; ``rows`` as Python has them, a column that a row lacks is null."""

    keyspace: str
    name: str
    columns: Mapping[str, str]
    partition: tuple[str, ...]
    rows: Sequence[Mapping[str, object]] = ()
    _cells: list[dict[str, Cell]] = field(default_factory=list)
    _indexes: dict[tuple[str, ...], dict[tuple[Cell, ...], list[int]]] = field(default_factory=dict)

    def holding(self, rows: Iterable[Mapping[str, object]]) -> FakeTable:
        """The same table with these rows."""
        return replace(self, rows=list(rows))

    def cells(self) -> list[dict[str, Cell]]:
        """Its rows as they are sent."""
        if not self._cells:
            self._cells = [
                {name: cell(kind, row.get(name)) for name, kind in self.columns.items()}
                for row in self.rows
            ]
        return self._cells

    def found(self, columns: tuple[str, ...], wanted: Iterable[tuple[Cell, ...]]) -> list[int]:
        """The numbers of the rows that have one of these values in these columns."""
        if columns not in self._indexes:
            index: dict[tuple[Cell, ...], list[int]] = defaultdict(list)
            for number, row in enumerate(self.cells()):
                index[tuple(row[name] for name in columns)].append(number)
            self._indexes[columns] = index
        index = self._indexes[columns]
        return [number for values in wanted for number in index.get(values, ())]


@dataclass
class Condition:
    """A column is ``=``, ``IN``, ``>=`` or ``<=``; ``literal`` stands in the statement itself."""

    column: str
    is_: str
    literal: Cell | None

    @property
    def several(self) -> bool:
        """Whether its value is a list."""
        return self.is_ == "IN"

    def holds(self, cell: Cell, value: Cell) -> bool:
        """Whether a cell is in the range that ends here; numbers below zero are not."""
        return cell >= value if self.is_ == ">=" else cell <= value


@dataclass
class Select:
    """A read of one table, taken apart. Answers are kept: a benchmark asks the same again."""

    table: FakeTable
    columns: tuple[str, ...]
    where: tuple[Condition, ...]
    limited: bool = False
    _known: dict[tuple[Cell, ...], tuple[int, bytes]] = field(default_factory=dict)

    @property
    def marks(self) -> list[tuple[str, str]]:
        """Name and type of each question mark, as Cassandra calls them."""
        found = [
            (f"in({each.column})", f"list<{self.table.columns[each.column]}>")
            if each.several
            else (each.column, self.table.columns[each.column])
            for each in self.where
            if each.literal is None
        ]
        return [*found, ("[per_partition_limit]", "int")] if self.limited else found

    def answer(self, values: tuple[Cell, ...]) -> tuple[int, bytes]:
        """How many rows these values lead to, and the rows as they are sent."""
        if values not in self._known:
            rows = self.table.cells()
            numbers = list(self._numbers(values)) if self.where else range(len(rows))
            body = b"".join(rows[number][name] for number in numbers for name in self.columns)
            self._known[values] = len(numbers), body
        return self._known[values]

    def _numbers(self, values: tuple[Cell, ...]) -> Iterable[int]:
        given = iter(values)
        wanted = {
            number: [each.literal] if each.literal else _several(next(given)) if each.several
            else [next(given)]
            for number, each in enumerate(self.where)
        }  # fmt: skip
        ranges = [(self.where[at], wanted.pop(at)[0]) for at in [*wanted] if self._is_range(at)]
        columns = tuple(self.where[at].column for at in wanted)
        rows, found = self.table.cells(), self.table.found(columns, product(*wanted.values()))
        within = [
            number
            for number in found
            if all(each.holds(rows[number][each.column], value) for each, value in ranges)
        ]
        return self._first_of_each(within, next(given)) if self.limited else within

    def _first_of_each(self, numbers: list[int], limit: Cell) -> list[int]:
        """The first rows of each partition."""
        (most,), seen = struct.unpack(">i", limit[4:]), Counter[tuple[Cell, ...]]()
        found = []
        for number in numbers:
            partition = tuple(self.table.cells()[number][name] for name in self.table.partition)
            seen[partition] += 1
            if seen[partition] <= most:
                found.append(number)
        return found

    def _is_range(self, number: int) -> bool:
        return self.where[number].is_ in (">=", "<=")


@dataclass
class Update:
    """A write of one row, taken apart by its marks."""

    table: FakeTable
    marks: list[tuple[str, str]]


def partition_marks(of: Select | Update) -> list[int]:
    """Which marks are the whole partition key; none where one of them has several values."""
    places = {name: place for place, (name, _) in enumerate(of.marks)}
    found = [places[name] for name in of.table.partition if name in places]
    return found if len(found) == len(of.table.partition) else []


def _several(values: Cell) -> list[Cell]:
    """The cells of a list, each once: a row is read once however often it is asked for."""
    found, place = [], 8
    while place < len(values):
        (length,) = struct.unpack_from(">i", values, place)
        found.append(values[place : place + 4 + length])
        place += 4 + length
    return list(dict.fromkeys(found))


def select(table: FakeTable, names: str, where: str | None, limited: bool) -> Select | None:
    """A read of the table; None where its conditions are beyond this server."""
    columns = tuple(table.columns) if names.strip() == "*" else tuple(names.lower().split(", "))
    parts = where.split(" AND ") if where else []
    found = [CONDITION.fullmatch(part.strip()) for part in parts]
    if any(each is None for each in found) or not set(columns) <= table.columns.keys():
        return None
    conditions = [
        Condition(
            each[1],
            each[2],
            None if each[3] == "?" else cell(table.columns[each[1]], each[3][1:-1]),
        )
        for each in found
        if each
    ]
    return Select(table, columns, tuple(conditions), limited)


def update(table: FakeTable, timed: bool, cells: str, where: str) -> Update | None:
    """A write of the table; None where it has more than columns that are set to marks."""
    parts = [*cells.split(", "), *where.split(" AND ")]
    names = [part.removesuffix(" = ?") for part in parts]
    if not set(names) <= table.columns.keys():
        return None
    marks = [(name, table.columns[name]) for name in names]
    return Update(table, [("[timestamp]", "bigint"), *marks] if timed else marks)


def declared(statements: Iterable[str], more: Mapping[str, str] | None = None) -> list[FakeTable]:
    """The tables that CREATE TABLE statements make.

    ``more`` are columns that each of them can be asked for: ``ttl(…)``, which a statement computes.
    """
    made = [match for each in statements if (match := CREATED.search(each))]
    return [_made(match, more or {}) for match in made]


def _made(created: re.Match[str], more: Mapping[str, str]) -> FakeTable:
    keyspace, name, body = created.groups()
    columns = {match[1]: match[2].rstrip(",") for match in COLUMN.finditer(body)}
    alone = [match[1] for match in COLUMN.finditer(body) if match[3]]
    primary = PRIMARY.search(body)
    partition = (primary[1] or primary[2]).split(", ") if primary else alone
    return FakeTable(keyspace, name, {**columns, **more}, tuple(partition))
