"""Whose our own keyspace is: the first that asks has it, for good."""

import uuid
from collections.abc import Iterator

import pytest

from checkpoints.cassandra import CassandraGenerations, CassandraOwner, Store, create_schema
from checkpoints.owner import OwnerStore
from reconcilers.limits.generation import GENERATIONS
from tests.fakes.checkpoints.owner import MemoryOwner


@pytest.fixture
def store(kind: str, request: pytest.FixtureRequest) -> Iterator[Store | None]:
    if kind == "memory":
        yield None
        return
    session, keyspace = request.getfixturevalue("cassandra"), f"owned_{uuid.uuid4().hex[:12]}"
    create_schema(session, keyspace)
    yield Store(session, keyspace)
    session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")


@pytest.fixture
def owner(store: Store | None) -> OwnerStore:
    return MemoryOwner() if store is None else CassandraOwner(store)


def test_the_first_that_asks_has_it_and_the_second_is_told_so(owner: OwnerStore) -> None:
    assert owner.owner() is None
    assert owner.claim("apache_james") == "apache_james"
    assert owner.claim("another_james") == "apache_james"
    assert owner.claim("apache_james") == "apache_james"
    assert owner.owner() == "apache_james"


def test_where_only_a_generation_stands_in_the_row_the_first_that_asks_has_it(
    owner: OwnerStore, store: Store | None
) -> None:
    """As after the table was truncated and a person has said that it is right as it is."""
    if store is not None:
        CassandraGenerations(store, "apache_james").replace(dict.fromkeys(GENERATIONS), 1)
    assert owner.owner() is None
    assert owner.claim("apache_james") == "apache_james"
    assert owner.owner() == "apache_james"
    assert owner.claim("another_james") == "apache_james"
