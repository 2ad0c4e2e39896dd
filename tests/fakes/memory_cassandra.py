"""A driver session onto tables in memory, for the statements that the mail workload sends.

Cells have write times, the newest wins; a delete by a part of the key hides what is not newer. It
knows the shapes of CQL that the workload uses, and fails at any other.
"""

import re
import threading
import time
from collections import Counter, defaultdict, namedtuple
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from cassandra.query import SimpleStatement

from deploy.mailserver.james import schema_statements

KEYSPACE = "mail"
MARKER = "row marker"
Key = tuple[object, ...]
Cell = tuple[int, object]
"""A write time (µs), and a value; None is a tombstone."""

SHAPES = {
    "insert": r"INSERT INTO mail\.(?P<table>\w+) \((?P<columns>.*?)\) VALUES \([?, ]+\)"
    r"(?P<stamped_last> USING TIMESTAMP \?)?(?P<new> IF NOT EXISTS)?",
    "update": r"UPDATE mail\.(?P<table>\w+)(?P<stamped> USING TIMESTAMP \?)? SET (?P<set>.*)"
    r" WHERE (?P<where>.*?)(?P<lightweight> IF modseq = \?)?",
    "delete": r"DELETE FROM mail\.(?P<table>\w+)(?P<stamped> USING TIMESTAMP \?)?"
    r" WHERE (?P<where>.*?)( IF EXISTS)?",
    "select": r"SELECT \S+ FROM mail\.(?P<table>\w+)( WHERE \w+ = \?)?",
}


@dataclass
class Bound:
    """A statement with its values."""

    cql: str
    values: list[Any]
    consistency_level: int | None = None


class Rows(list[Any]):
    """What a statement answers."""

    was_applied = True

    def one(self) -> Any:
        return self[0] if self else None


@dataclass
class Table:
    """One table: its columns, how many of them are its key, and what was written to it."""

    columns: list[str]
    keys: int
    cells: defaultdict[Key, dict[str, Cell]] = field(default_factory=lambda: defaultdict(dict))
    deletes: defaultdict[object, list[tuple[Key, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    counters: defaultdict[Key, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def put(self, key: Key, column: str, at: int, value: object) -> None:
        if at >= self.cells[key].get(column, (-1, None))[0]:
            self.cells[key][column] = (at, value)

    def live(self, key: Key) -> dict[str, object]:
        """The cells that no tombstone hides."""
        hidden = max(
            (at for part, at in self.deletes[key[0]] if key[: len(part)] == part), default=-1
        )
        cells = self.cells[key].items()
        return {name: value for name, (at, value) in cells if at > hidden and value is not None}

    def rows(self, part: Key) -> Rows:
        """The rows whose key begins so."""
        row = namedtuple("row", self.columns)  # type: ignore[misc]
        found = Rows(
            row(*key, *(counts.get(name) for name in self.columns[self.keys :]))
            for key, counts in self.counters.items()
        )
        for key in list(self.cells):
            if key[: len(part)] == part and (live := self.live(key)):
                sets = {column: _elements(live, column) for column in ("userflags", "rights")}
                cells = {**sets, **live}
                found.append(row(*key, *(cells.get(name) for name in self.columns[self.keys :])))
        return found


class MemoryCassandra:
    """The session. `log` holds every statement as it came, with its values."""

    def __init__(self) -> None:
        self.tables = dict(map(_table_of, schema_statements(KEYSPACE)))
        self.log: list[tuple[str, list[Any]]] = []
        self._lock = threading.Lock()

    def prepare(self, cql: str) -> Any:
        return SimpleNamespace(bind=lambda values: Bound(cql, list(values)))

    def execute_async(self, bound: Bound) -> Any:
        with self._lock:
            self.log.append((bound.cql, bound.values))
            answer = self._run(bound.cql, bound.values)
        return SimpleNamespace(result=lambda: answer)

    def execute(self, statement: SimpleStatement) -> Rows:
        with self._lock:
            return self._run(statement.query_string, [])

    def _run(self, cql: str, values: list[Any]) -> Rows:
        assert cql.count("?") == len(values), cql
        for name, shape in SHAPES.items():
            if match := re.fullmatch(shape, cql):
                told = match.groupdict()
                answer: Rows = getattr(self, f"_{name}")(self.tables[told["table"]], told, values)
                return answer
        raise AssertionError(cql)

    def _insert(self, table: Table, told: dict[str, str], values: list[Any]) -> Rows:
        at = values[-1] if told["stamped_last"] else _now_us()
        given = dict(zip(told["columns"].split(", "), values, strict=False))
        key = tuple(given.pop(name) for name in table.columns[: table.keys])
        answer = Rows()
        if told["new"] and table.live(key):
            answer.was_applied = False
            return answer
        table.put(key, MARKER, at, MARKER)
        for name, value in given.items():
            _assign(table, key, f"{name} = ?", at, value)
        return answer

    def _update(self, table: Table, told: dict[str, str], values: list[Any]) -> Rows:
        rest = list(values)
        at = rest.pop(0) if told["stamped"] else _now_us()
        wanted = rest.pop() if told["lightweight"] else None
        assignments = told["set"].split(", ")
        key = _key_of(table, told["where"], rest[len(assignments) :])
        answer = Rows()
        if told["lightweight"] and table.live(key).get("modseq") != wanted:
            answer.was_applied = False
            return answer
        for assignment, value in zip(assignments, rest, strict=False):
            _assign(table, key, assignment, at, value)
        return answer

    def _delete(self, table: Table, told: dict[str, str], values: list[Any]) -> Rows:
        at, *rest = values if told["stamped"] else [_now_us(), *values]
        key = _key_of(table, told["where"], rest)
        table.deletes[key[0]].append((key, at))
        return Rows()

    def _select(self, table: Table, _: dict[str, str], values: list[Any]) -> Rows:
        return table.rows(tuple(values))


def _elements(cells: dict[str, object], column: str) -> set[object] | None:
    """What is left of a column that is a set."""
    return {value for name, value in cells.items() if name.startswith(f"{column}.")} or None


def _assign(table: Table, key: Key, assignment: str, at: int, value: Any) -> None:
    column, _, right = assignment.partition(" = ")
    if isinstance(value, set):
        if right == "?":
            for name in [each for each in table.cells[key] if each.startswith(f"{column}.")]:
                table.put(key, name, at - 1, None)
        for flag in value:
            table.put(key, f"{column}.{flag}", at, None if " - " in right else flag)
    elif column == "attachments":
        fields = ("id", "name", "cid", "isinline")
        elements = [SimpleNamespace(**dict(zip(fields, each, strict=True))) for each in value]
        table.put(key, column, at, elements)
    elif right != "?":
        table.counters[key][column] += value
    elif column == "mailboxbase":
        table.put(key, column, at, SimpleNamespace(namespace=value[0], user=value[1]))
    else:
        table.put(key, column, at, value)


def _key_of(table: Table, where: str, values: Sequence[Any]) -> Key:
    """The values in the order of the key, or of the part of it that is given."""
    names = [condition.removesuffix(" = ?") for condition in where.split(" AND ")]
    given = dict(zip(names, values, strict=True))
    return tuple(given[name] for name in table.columns[: table.keys] if name in given)


def _table_of(statement: str) -> tuple[str, Table]:
    """A table of james.cql, its key columns first."""
    name = re.match(r"CREATE \w+ IF NOT EXISTS mail\.(\w+)", statement)
    assert name is not None
    columns = re.findall(r"^    ([a-z_]+) [a-z<]", statement, re.MULTILINE)
    key = re.search(r"PRIMARY KEY \((.*)\)$|    (\w+) \w+ PRIMARY KEY", statement, re.MULTILINE)
    keys = re.findall(r"\w+", key[1] or key[2]) if key else []
    others = [column for column in columns if column not in keys]
    return name[1], Table([*keys, *others], len(keys))


def _now_us() -> int:
    return time.time_ns() // 1000
