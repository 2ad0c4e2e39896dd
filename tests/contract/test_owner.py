"""Whose our own keyspace is: the first that asks has it, for good."""

import uuid
from collections.abc import Iterator

import pytest

from checkpoints.cassandra import CassandraOwner, Store, create_schema
from checkpoints.memory_owner import MemoryOwner
from checkpoints.owner import OwnerStore


@pytest.fixture
def owner(kind: str, request: pytest.FixtureRequest) -> Iterator[OwnerStore]:
    if kind == "memory":
        yield MemoryOwner()
        return
    session, keyspace = request.getfixturevalue("cassandra"), f"owned_{uuid.uuid4().hex[:12]}"
    create_schema(session, keyspace)
    yield CassandraOwner(Store(session, keyspace))
    session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")


def test_the_first_that_asks_has_it_and_the_second_is_told_so(owner: OwnerStore) -> None:
    assert owner.owner() is None
    assert owner.claim("apache_james") == "apache_james"
    assert owner.claim("another_james") == "apache_james"
    assert owner.claim("apache_james") == "apache_james"
    assert owner.owner() == "apache_james"
