"""A keyspace in memory, for the steps of the schema: tables, rows with write times, and a death."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from checkpoints.schema.step import made_by
from reconcilers.declared.family import Schema
from reconcilers.words.errors import Refused

Cells = dict[object, tuple[object, int]]
"""Value and write time by key."""


class Killed(BaseException):
    """The process died here."""


@dataclass
class MemorySchemaStore:
    """`checkpoints.schema.upgrade.SchemaStore`.

    ``changes_left`` is how many changes it lives to see. Every change made is in ``log``.
    """

    keyspace: str = "mine"
    schema: Schema = field(default_factory=dict)
    records: dict[int, str] = field(default_factory=dict)
    cells: defaultdict[str, Cells] = field(default_factory=lambda: defaultdict(dict))
    leases: list[tuple[str, str, str | None]] = field(default_factory=list)
    changes_left: int | None = None
    may_create: bool = True
    cluster_of: int = 1
    log: list[str] = field(default_factory=list)

    def end(self) -> tuple[object, ...]:
        """All that it holds."""
        return self.schema, self.records, {name: rows for name, rows in self.cells.items() if rows}

    def tables(self) -> Schema:
        return {table: dict(columns) for table, columns in self.schema.items()}

    def nodes(self, data_centre: str | None) -> int:
        return self.cluster_of

    def change(self, statement: str) -> None:
        if statement.startswith(f"INSERT INTO {self.keyspace}.schema_steps "):
            assert "schema_steps" in self.schema, "there is no such table"
            self._one_more(statement)
            _, number, name, *_ = statement.partition("VALUES (")[2].split(", ")
            self.records[int(number)] = name[1:-1].replace("''", "'")
            return
        if not self.may_create:
            raise Refused("Unauthorized: no CREATE permission")
        self._one_more(statement)
        if statement.startswith("CREATE KEYSPACE IF NOT EXISTS "):
            return
        table, columns = made_by(statement)
        if statement.startswith("CREATE"):
            self.schema.setdefault(table, dict(columns))
        else:
            self.schema[table] |= columns

    def prepare(self, cql: str) -> object:
        for word in cql.split():
            if word.startswith("$ks."):
                assert word.removeprefix("$ks.") in self.schema, f"there is no table {word}"
        return cql

    def rows(self, doing: str, statement: Any, *values: object) -> Iterator[Any]:
        table = statement.partition("FROM $ks.")[2].split()[0]
        if table == "schema_steps":
            return iter(self.records.items())
        if table == "lease":
            return iter(self.leases)
        return iter([(key, value, at) for key, (value, at) in self.cells[table].items()])

    def run(self, doing: str, requests: Iterable[tuple[Any, tuple[Any, ...]]]) -> None:
        for statement, (key, value, at) in requests:
            table = statement.partition("INSERT INTO $ks.")[2].split()[0]
            self._one_more(f"{table} {key}")
            self.write(table, key, value, at)

    def write(self, table: str, key: object, value: object, at: int) -> None:
        """The newest write wins."""
        if at >= self.cells[table].get(key, (None, -1))[1]:
            self.cells[table][key] = (value, at)

    def _one_more(self, what: str) -> None:
        if self.changes_left is not None:
            if self.changes_left == 0:
                raise Killed(what)
            self.changes_left -= 1
        self.log.append(what)
