"""The contract of generations: the same for the fake and for Cassandra, where tables are lost."""

from collections.abc import Iterator
from typing import Any

import pytest

from checkpoints.cassandra import (
    CassandraGenerations,
    CassandraHolds,
    CassandraJournal,
    CassandraPauses,
    Store,
    create_schema,
)
from checkpoints.generations import GenerationStore
from reconcilers.declared.families.message import MESSAGE
from reconcilers.limits.breakers import Breaker
from reconcilers.limits.generation import GENERATIONS, GUARDS, OWNER, doubt
from reconcilers.limits.pause import Pause
from reconcilers.limits.write_target import ALL
from tests.contract.making import a_store
from tests.fakes.checkpoints.generations import MemoryGenerations

NONE = dict.fromkeys(GENERATIONS)
FIRST, SECOND = (
    dict.fromkeys(GENERATIONS, at) for at in (1_800_000_000_000_000, 1_800_000_060_000_000)
)
AT, LATER = FIRST[OWNER], SECOND[OWNER]
JAMES = "apache_james"


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    yield from a_store(request.getfixturevalue("cassandra"))


@pytest.fixture
def generations(real: Store | None) -> GenerationStore:
    return MemoryGenerations() if real is None else CassandraGenerations(real, JAMES)


def test_a_new_keyspace_has_none_and_each_table_takes_the_first(
    generations: GenerationStore,
) -> None:
    assert generations.read() == NONE
    assert generations.replace(NONE, AT)
    assert generations.read() == FIRST


def test_it_is_raised_where_it_is_what_was_read(generations: GenerationStore) -> None:
    generations.replace(NONE, AT)
    assert generations.replace(FIRST, LATER)
    assert not generations.replace(FIRST, LATER + 1)
    assert generations.read() == SECOND


@pytest.mark.stack
def test_a_partition_with_a_generation_alone_holds_no_pause_no_breaker_and_no_hold(
    store: Store,
) -> None:
    CassandraGenerations(store, JAMES).replace(NONE, AT)
    pauses, journal = CassandraPauses(store, JAMES), CassandraJournal(store, JAMES)
    assert (pauses.standing(), pauses.history()) == ((), ())
    assert journal.breakers() == {}
    assert list(CassandraHolds(store).all(MESSAGE)) == []
    pause = Pause(ALL, AT, "alice", "a look")
    pauses.begin(pause)
    journal.open_breaker(Breaker.REPAIRS, "2000 in a minute", AT)
    assert pauses.standing() == (pause,)
    assert journal.breakers() == {Breaker.REPAIRS: "2000 in a minute"}
    journal.close_breakers(AT + 1)
    assert journal.breakers() == {}


@pytest.mark.stack
@pytest.mark.parametrize("table", GENERATIONS)
def test_a_truncated_table_has_none_and_is_given_none_by_a_raise_that_was_under_way(
    store: Store, cassandra: Any, table: str
) -> None:
    generations = CassandraGenerations(store, JAMES)
    generations.replace(NONE, AT)
    cassandra.execute(f"TRUNCATE {store.keyspace}.{table}")
    assert generations.read() == {**FIRST, table: None}
    assert not generations.replace(FIRST, LATER)
    found = generations.read()
    assert found[table] is None
    assert f"table {table} has no generation" in str(doubt(found, AT))


@pytest.mark.stack
def test_a_keyspace_that_was_dropped_and_made_again_has_none(store: Store, cassandra: Any) -> None:
    generations = CassandraGenerations(store, JAMES)
    generations.replace(NONE, AT)
    cassandra.execute(f"DROP KEYSPACE {store.keyspace}")
    create_schema(cassandra, store.keyspace)
    assert generations.read() == NONE
    assert doubt(NONE, AT) is not None


@pytest.mark.stack
def test_what_a_person_takes_as_right_is_above_a_copy_that_was_restored(
    store: Store, cassandra: Any
) -> None:
    """The tables are emptied, and hold what they held before, as `nodetool refresh` leaves them."""
    generations = CassandraGenerations(store, JAMES)
    generations.replace(NONE, AT)
    generations.replace(FIRST, LATER)
    for table in (*GUARDS, OWNER):
        cassandra.execute(f"TRUNCATE {store.keyspace}.{table}")
    generations.replace(NONE, AT)
    assert "is a copy of" in str(doubt(generations.read(), LATER))
    assert generations.replace(FIRST, LATER + 1)
    assert doubt(generations.read(), LATER) is None
