"""The final rows as they are asked of Cassandra: with write times, as far as it tells them."""

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import ConsistencyLevel, InvalidRequest

from deploy.nemesis.final import read_final
from deploy.nemesis.tables import FinalRow

COLUMNS = {
    "aclv2": {"id": "timeuuid", "key": "text", "rights": "set<text>"},
    "mailboxcounters": {"mailboxid": "timeuuid", "count": "counter"},
    "mailbox": {"id": "timeuuid", "name": "text"},
    "unknown": {"id": "int"},
}
ROWS: dict[str, Any] = {
    "id": "a",
    "key": "ben",
    "rights": {"l"},
    "mailboxid": "a",
    "count": 3,
    "name": "INBOX",
}


class Answers:
    """A session of Cassandra 5.0, or of one that refuses the write times of sets."""

    def __init__(self, refused: str) -> None:
        tables = {
            name: SimpleNamespace(
                columns={each: SimpleNamespace(cql_type=kind) for each, kind in told.items()}
            )
            for name, told in COLUMNS.items()
        }
        keyspaces = {"mail": SimpleNamespace(tables=tables)}
        self.cluster = SimpleNamespace(metadata=SimpleNamespace(keyspaces=keyspaces))
        self._refused = refused
        self.levels: set[int] = set()

    def prepare(self, cql: str) -> None:
        if self._refused and self._refused in cql:
            raise InvalidRequest("not of a collection")

    def execute(self, statement: Any) -> list[Any]:
        self.prepare(statement.query_string)
        self.levels.add(statement.consistency_level)
        names = [
            each.split(" AS ")[-1]
            for each in statement.query_string[len("SELECT ") :].split(" FROM ")[0].split(", ")
        ]
        values: list[Any] = [
            ROWS.get(each, [7] if each.endswith("rights") else 5) for each in names
        ]
        row: Any = namedtuple("row", names)  # type: ignore[misc]
        return [row(*values)]


@pytest.mark.parametrize(
    ("refused", "times"), [("", {"rights": [7]}), ("writetime(rights)", {})], ids=["5.0", "4.1"]
)
def test_all_rows_are_read_with_the_times_that_there_are(
    refused: str, times: dict[str, object]
) -> None:
    session = Answers(refused)
    assert read_final(session, "mail") == {
        "aclv2": [FinalRow({"id": "a", "key": "ben", "rights": {"l"}}, times)],
        "mailboxcounters": [FinalRow({"mailboxid": "a", "count": 3}, {})],
        "mailbox": [FinalRow({"id": "a", "name": "INBOX"}, {"name": 5})],
    }
    assert session.levels == {ConsistencyLevel.ALL}
