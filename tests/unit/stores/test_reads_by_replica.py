"""Reads of many partitions: how many a read names, and which node it is sent to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from cassandra.cqltypes import ListType, LongType, TimeUUIDType
from cassandra.query import BoundStatement, PreparedStatement

from checkpoints.cassandra import Store
from checkpoints.cassandra.raw_select import RawReads
from checkpoints.cassandra.replicas import Routed, partition_of
from streaming.tables.statement_cache import StatementCache

KEYSPACE = "james"
IDS = [UUID(f"{number:08}-0000-1000-8000-000000000001") for number in range(100)]
LIST: Any = ListType.apply_parameters([TimeUUIDType])
ID: Any = TimeUUIDType


def prepared(*types: Any, whole_key: bool = False) -> Any:
    """As the driver makes it: the server names no partition key where there is a list."""
    columns = [
        SimpleNamespace(keyspace_name=KEYSPACE, table_name="t", name=f"c{at}", type=each)
        for at, each in enumerate(types)
    ]
    indexes = list(range(len(types))) if whole_key else None
    result = [(KEYSPACE, "t", "c", LIST)]
    return PreparedStatement(columns, b"id", indexes, "SELECT", KEYSPACE, 5, result, None)


def owner(partition: bytes, nodes: int) -> int:
    return sum(partition) % nodes


class NoRows(list[Any]):
    """The answer of the driver, and of that for undecoded rows."""

    has_more_pages = False
    current_rows: tuple[()] = ()
    column_types = (LIST,)


@dataclass
class Sent:
    """A session with a cluster of so many nodes; ``asked`` are the statements that it was sent."""

    nodes: int
    asked: list[tuple[Any, Any]] = field(default_factory=list)

    @property
    def cluster(self) -> Any:
        return SimpleNamespace(metadata=self, connect=lambda: self)

    def all_hosts(self) -> list[int]:
        return list(range(self.nodes))

    def get_replicas(self, keyspace: str, partition: bytes) -> list[int]:
        assert keyspace == KEYSPACE
        first = owner(partition, self.nodes)
        return [first, (first + 1) % self.nodes, (first + 2) % self.nodes]

    def execution_profile_clone_update(self, *_: object, **_options: object) -> None:
        """No profile is needed."""

    def prepare(self, _cql: str) -> Any:
        return prepared(LIST)

    def execute_async(self, statement: Any, values: Any = (), **_options: object) -> Any:
        self.asked.append((statement, values))
        return SimpleNamespace(result=NoRows)

    def keys(self) -> list[int]:
        """How many keys each read names."""
        return [len(names(*each)) for each in self.asked]


def names(statement: Any, values: Any) -> list[bytes]:
    """The cells of the list that a read was given."""
    if isinstance(statement, BoundStatement):
        ids = LIST.from_binary(statement.values[0], 5)
    else:
        (ids,) = values
    return [TimeUUIDType.serialize(each, 5) for each in ids]


def by_tables(session: Any, most: int) -> None:
    list(StatementCache(session).partitions(prepared(LIST), IDS, most))


def by_store(session: Any, most: int) -> None:
    store = Store(session, "own", partitions_a_read=most)
    session.asked += store.partitions(prepared(LIST), IDS)


def undecoded(session: Any, most: int) -> None:
    reads = RawReads(session, 4, most)
    keys = [(TimeUUIDType.serialize(each, 5),) for each in IDS]
    list(reads.select("SELECT").by_key(keys))


WAYS = pytest.mark.parametrize("read", [by_tables, by_store, undecoded])


@WAYS
@pytest.mark.parametrize(("nodes", "most", "reads"), [(1, 100, 1), (3, 100, 1), (3, 20, 5)])
def test_on_few_nodes_only_the_setting_divides_a_read(
    read: Any, nodes: int, most: int, reads: int
) -> None:
    session = Sent(nodes)
    read(session, most)
    assert session.keys() == [most] * reads
    for statement, _ in session.asked:
        assert not isinstance(statement, Routed) or statement.routing_key is None


@WAYS
@pytest.mark.parametrize("most", [100, 7])
def test_on_more_nodes_a_read_is_of_one_first_replica_and_sent_there(read: Any, most: int) -> None:
    session = Sent(5)
    read(session, most)
    found = Counter[bytes]()
    for statement, values in session.asked:
        cells = names(statement, values)
        found.update(cells)
        assert {owner(each, 5) for each in cells} == {owner(statement.routing_key, 5)}
        assert statement.keyspace == KEYSPACE, "the driver finds replicas by it"
    assert found == Counter(TimeUUIDType.serialize(each, 5) for each in IDS)
    assert max(session.keys()) <= most
    if most == 100:
        assert len(session.asked) <= 5


def test_the_key_of_several_columns_is_that_of_the_driver() -> None:
    of_driver = prepared(ID, LongType, whole_key=True).bind((IDS[7], 12)).routing_key
    assert partition_of(prepared(ID, ListType.apply_parameters([LongType])), (IDS[7],), ())(12) == (
        of_driver
    )
    assert partition_of(prepared(LIST, LongType), (), (12,))(IDS[7]) == of_driver


def test_a_statement_that_names_its_partition_keeps_its_key() -> None:
    statement = prepared(ID, whole_key=True)
    assert Routed(statement, None).bind((IDS[1],)).routing_key == TimeUUIDType.serialize(IDS[1], 5)
