"""Whose our own keyspace is: the first that asks has it, for good."""

from collections.abc import Iterator

import pytest

from checkpoints.cassandra import CassandraGenerations, CassandraOwner, Store
from checkpoints.owner import OwnerStore
from reconcilers.limits.generation import GENERATIONS
from tests.contract.making import a_store
from tests.fakes.checkpoints.owner import MemoryOwner


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    yield from a_store(request.getfixturevalue("cassandra"))


@pytest.fixture
def owner(real: Store | None) -> OwnerStore:
    return MemoryOwner() if real is None else CassandraOwner(real)


def test_the_first_that_asks_has_it_and_the_second_is_told_so(owner: OwnerStore) -> None:
    assert owner.owner() is None
    assert owner.claim("apache_james") == "apache_james"
    assert owner.claim("another_james") == "apache_james"
    assert owner.claim("apache_james") == "apache_james"
    assert owner.owner() == "apache_james"


def test_where_only_a_generation_stands_in_the_row_the_first_that_asks_has_it(
    owner: OwnerStore, real: Store | None
) -> None:
    """As after the table was truncated and a person has said that it is right as it is."""
    if real is not None:
        CassandraGenerations(real, "apache_james").replace(dict.fromkeys(GENERATIONS), 1)
    assert owner.owner() is None
    assert owner.claim("apache_james") == "apache_james"
    assert owner.owner() == "apache_james"
    assert owner.claim("another_james") == "apache_james"
