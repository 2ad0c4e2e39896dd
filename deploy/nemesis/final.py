"""Reads the final rows of all tables, with write times."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from deploy.nemesis.tables import TABLES, FinalRow, FinalTables, TablePart

ROWS_PER_PAGE = 2000
SEVERAL = ("set<", "list<")
TIME = "written_at_"
"""What the name of a write time begins with in the answer of Cassandra."""


def read_final(session: Session, keyspace: str, level: int = ConsistencyLevel.ALL) -> FinalTables:
    """All rows of all tables that exist, each table in memory.

    Cassandra 4.1 does not tell the write times of a set's elements: they are absent. The session's
    rows must be named tuples, as they are by default. Raises the driver's error.
    """
    known = session.cluster.metadata.keyspaces[keyspace].tables
    return {
        name: list(_rows(session, f"{keyspace}.{name}", _columns(known[name].columns), level))
        for name in TABLES
        if name in known
    }


def _columns(told: Mapping[str, Any]) -> Mapping[str, str]:
    """The type of each column by its name."""
    return {name: str(column.cql_type) for name, column in told.items()}


def _rows(
    session: Session, table: str, columns: Mapping[str, str], level: int
) -> Iterator[FinalRow]:
    timed = _timed(table.partition(".")[2], columns)
    cql = select_with_times(table, columns, timed)
    try:
        session.prepare(cql)
    except InvalidRequest:
        timed = [name for name in timed if not columns[name].startswith(SEVERAL)]
        cql = select_with_times(table, columns, timed)
    statement = SimpleStatement(cql, fetch_size=ROWS_PER_PAGE, consistency_level=level)
    for row in session.execute(statement):
        told = row._asdict()
        times = {column: told.pop(f"{TIME}{column}") for column in timed}
        yield FinalRow(told, times)


def _timed(name: str, columns: Mapping[str, str]) -> list[str]:
    """The columns that have write times: none of a key or a counter."""
    if TABLES[name].part is TablePart.COUNTER:
        return []
    return [column for column in columns if column not in TABLES[name].key]


def select_with_times(table: str, columns: Iterable[str], timed: Iterable[str]) -> str:
    """A SELECT of these columns, and the write times of some."""
    times = [f"writetime({column}) AS {TIME}{column}" for column in timed]
    return f"SELECT {', '.join([*columns, *times])} FROM {table}"
