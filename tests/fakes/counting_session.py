"""A driver session over rows in memory, which takes down each read of `streaming.tables.Tables`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

SHAPE = re.compile(
    r"SELECT (?P<columns>.+) FROM \w+\.(?P<table>\w+) WHERE (?P<where>.+?)"
    r"(?P<last> ORDER BY \w+ DESC)?(?P<limit> LIMIT \?)?"
)
Rows = Sequence[Mapping[str, Any]]
"""The rows of a partition, in the order of their keys."""


@dataclass
class Read:
    """A read: of which table, of how many partitions, and how many rows it has given."""

    table: str
    partitions: tuple[object, ...]
    rows: int


@dataclass
class Prepared:
    """A statement, as it is prepared."""

    query: str
    column_metadata: tuple[()] = ()
    result_metadata: tuple[()] = ()


@dataclass
class Answer:
    """What a statement gives."""

    rows: list[dict[str, Any]]

    def result(self) -> list[dict[str, Any]]:
        return self.rows


def one_node() -> Any:
    """A cluster of one node: no read is divided by replica."""
    return SimpleNamespace(metadata=SimpleNamespace(all_hosts=lambda: ["one"]))


@dataclass
class CountingSession:
    """``stored`` are the partitions of each table, by key; ``reads`` what was asked of them."""

    stored: Mapping[str, Mapping[Any, Rows]]
    reads: list[Read] = field(default_factory=list)
    cluster: Any = field(default_factory=one_node)

    def prepare(self, query: str) -> Prepared:
        return Prepared(query)

    def execute_async(self, statement: Prepared, values: tuple[Any, ...]) -> Answer:
        """As it is answered; only the whole is counted."""
        rows = list(self._rows(statement.query, list(values)))
        return Answer(rows)

    def execute(self, statement: Prepared, values: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
        """As pages: what the caller does not take is not read."""
        read = None
        for row in self._rows(statement.query, list(values), counted=False):
            read = read or self._noted(statement.query, (values[0],))
            read.rows += 1
            yield row

    def asked(self, table: str) -> list[Read]:
        return [each for each in self.reads if each.table == table]

    def _noted(self, query: str, partitions: tuple[object, ...], rows: int = 0) -> Read:
        found = SHAPE.fullmatch(query)
        assert found, query
        self.reads.append(Read(found["table"], partitions, rows))
        return self.reads[-1]

    def _rows(
        self, query: str, values: list[Any], *, counted: bool = True
    ) -> Iterable[dict[str, Any]]:
        found = SHAPE.fullmatch(query)
        assert found, query
        first, *rest = found["where"].split(" AND ")
        limit = values.pop() if found["limit"] else None
        wanted = values[0] if first.endswith(" IN ?") else [values[0]]
        rows = [row for key in wanted for row in self.stored[found["table"]].get(key, ())]
        for condition, value in zip(rest, values[1:], strict=True):
            column, operator, _ = condition.split()
            sought = frozenset(value) if operator == "IN" else value
            rows = [row for row in rows if _holds(row[column], operator, sought)]
        if found["last"]:
            rows.reverse()
        rows = rows[:limit]
        if counted:
            self._noted(query, tuple(wanted), len(rows))
        return [_shown(row, found["columns"]) for row in rows]


def _holds(cell: Any, operator: str, value: Any) -> bool:
    if operator == "IN":
        return cell in value
    return bool(cell >= value) if operator == ">=" else bool(cell == value)


def _shown(row: Mapping[str, Any], columns: str) -> dict[str, Any]:
    """The row's cells by the names that they are read under; each was written at 1 µs."""
    shown: dict[str, Any] = {}
    for each in columns.split(", "):
        name, _, alias = each.partition(" AS ")
        shown[alias or name] = 1 if name.startswith("writetime(") else row[name]
    return shown
