"""The model of Cassandra's cells against the real server: the same statements, the same rows.

Write times are drawn from a handful, so that ties are the rule. The property tests of the guards
are worth as much as this model is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from uuid import UUID, uuid4

import pytest
from cassandra.cluster import PreparedStatement, ResponseFuture, Session

from reconcilers.words.model import Row, Value
from tests.property.cells import Delete, Insert, Key, Statement, Table, Update
from tests.sessions import create_keyspace

COLUMNS = ("flag", "number", "name")
ELEMENTS = ("a", "b", "c")
VALUES: Mapping[str, tuple[Value, ...]] = {
    "flag": (None, False, True),
    "number": (None, -1, 0, 1, 2**40),
    "name": (None, "", "a", "ab", "é"),
}
LATEST = 6
SEQUENCES = 400


@pytest.fixture(scope="module")
def table(cassandra: Session) -> Iterator[str]:
    keyspace = f"cells_ct_{uuid4().hex[:8]}"
    create_keyspace(cassandra, keyspace)
    cassandra.execute(
        f"CREATE TABLE {keyspace}.cells (part uuid, place int, uid int, flag boolean,"
        " number bigint, name text, labels set<text>, PRIMARY KEY ((part), place, uid))"
    )
    yield f"{keyspace}.cells"
    cassandra.execute(f"DROP KEYSPACE {keyspace}")


class Server:
    """The statements of the model, as CQL."""

    def __init__(self, session: Session, table: str) -> None:
        self._session = session
        self._table = table
        self._prepared: dict[str, PreparedStatement] = {}

    def apply(self, statement: Statement) -> None:
        match statement:
            case Delete(prefix, at):
                given = ("part", "place", "uid")[: len(prefix)]
                where = " AND ".join(f"{name} = ?" for name in given)
                self._run(
                    f"DELETE FROM {self._table} USING TIMESTAMP ? WHERE {where}", at, *prefix
                ).result()
            case Insert(key, at, cells):
                marks = ", ".join("?" * (3 + len(cells)))
                names = ", ".join(("part", "place", "uid", *cells))
                self._run(
                    f"INSERT INTO {self._table} ({names}) VALUES ({marks}) USING TIMESTAMP ?",
                    *key,
                    *cells.values(),
                    at,
                ).result()
            case Update(key, at, cells, added, removed):
                changes = [f"{name} = ?" for name in cells]
                changes += [f"{name} = {name} + ?" for name in added]
                changes += [f"{name} = {name} - ?" for name in removed]
                self._run(
                    f"UPDATE {self._table} USING TIMESTAMP ? SET {', '.join(changes)}"
                    " WHERE part = ? AND place = ? AND uid = ?",
                    at,
                    *cells.values(),
                    *added.values(),
                    *removed.values(),
                    *key,
                ).result()

    def rows(self, part: UUID) -> dict[Key, Row]:
        times = ", ".join(f"writetime({name}) AS at_{name}" for name in COLUMNS)
        names = ", ".join(("place", "uid", *COLUMNS, "labels"))
        found = self._run(f"SELECT {names}, {times} FROM {self._table} WHERE part = ?", part)
        return {(part, row.place, row.uid): _row(part, row) for row in found.result()}

    def _run(self, cql: str, *values: object) -> ResponseFuture:
        if cql not in self._prepared:
            self._prepared[cql] = self._session.prepare(cql)
        return self._session.execute_async(self._prepared[cql], values)


def _row(part: UUID, row: object) -> Row:
    cells: dict[str, Value] = {name: getattr(row, name) for name in ("place", "uid", *COLUMNS)}
    cells |= {"part": part, "labels": frozenset(getattr(row, "labels", None) or ())}
    times = {name: getattr(row, f"at_{name}") for name in COLUMNS}
    return Row(cells, {name: at for name, at in times.items() if at is not None})


class Draw:
    """Random statements in one partition: two clustering prefixes, two rows in each."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.part = uuid4()

    def statements(self) -> list[Statement]:
        return [self._statement() for _ in range(self._random.randrange(2, 12))]

    def _statement(self) -> Statement:
        key: Key = (self.part, self._random.randrange(2), self._random.randrange(2))
        at = self._random.randrange(1, LATEST)
        match self._random.randrange(8):
            case 0:
                return Insert(key, at, self._cells() | self._whole_set())
            case 1 | 2 | 3:
                return Update(key, at, self._cells() or {"flag": True})
            case 4:
                return Update(key, at, self._whole_set() or {"labels": frozenset({"a"})})
            case 5:
                return Update(key, at, self._cells(), added={"labels": self._elements()})
            case 6:
                return Update(key, at, self._cells(), removed={"labels": self._elements()})
            case _:
                return Delete(key[: self._random.choice((1, 2, 3, 3))], at)

    def _cells(self) -> dict[str, Value]:
        names = self._random.sample(COLUMNS, self._random.randrange(len(COLUMNS) + 1))
        return {name: self._random.choice(VALUES[name]) for name in names}

    def _whole_set(self) -> dict[str, Value]:
        wanted = self._random.choice((None, self._elements(), frozenset[str](), "left out"))
        return {} if wanted == "left out" else {"labels": wanted}

    def _elements(self) -> frozenset[str]:
        return frozenset(self._random.sample(ELEMENTS, self._random.randrange(1, 3)))


def test_model_and_server_read_back_the_same(cassandra: Session, table: str) -> None:
    server = Server(cassandra, table)
    shown = 0
    for seed in range(SEQUENCES):
        draw = Draw(seed)
        model = Table(("part", "place", "uid"), COLUMNS, ("labels",))
        statements = draw.statements()
        for statement in statements:
            server.apply(statement)
            model.apply(statement)
        expected = dict(model.rows(draw.part))
        assert server.rows(draw.part) == expected, f"seed {seed}: {statements}"
        shown += len(expected)
    assert shown > SEQUENCES, "too few rows survive: the comparison proves little"


def test_the_order_of_arrival_does_not_matter(cassandra: Session, table: str) -> None:
    server = Server(cassandra, table)
    for seed in range(SEQUENCES // 4):
        draw = Draw(seed)
        model = Table(("part", "place", "uid"), COLUMNS, ("labels",))
        statements = draw.statements()
        for statement in statements:
            model.apply(statement)
        for statement in reversed(statements):
            server.apply(statement)
        assert server.rows(draw.part) == dict(model.rows(draw.part)), f"seed {seed}: {statements}"
