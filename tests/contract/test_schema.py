"""The steps of our own keyspace on the real Cassandra: made, killed midway, refused."""

import uuid
from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraLease, Store, create_schema
from checkpoints.lease import Holder, Lease
from checkpoints.schema import STEPS
from checkpoints.schema.step import RowStore, SchemaStep
from checkpoints.schema.upgrade import product_version, read_gap, upgrade
from reconcilers.declared.family import Schema
from reconcilers.words.errors import AlreadyRunning, OtherSchema, Refused
from tests.fakes.dying_store import DyingStore
from tests.fakes.schema_store import Killed

pytestmark = pytest.mark.stack


@pytest.fixture
def own(cassandra: Session) -> Iterator[str]:
    """The name of a keyspace that is not there yet."""
    name = f"reconciler_{uuid.uuid4().hex[:12]}"
    yield name
    cassandra.execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=120)


def finished(session: Session, own: str) -> list[tuple[int, str, str]]:
    rows = session.execute(f"SELECT number, name, product, finished_at FROM {own}.schema_steps")
    found = list(rows)
    assert all(row.finished_at is not None for row in found)
    return [(row.number, row.name, row.product) for row in found]


ALL_OF_THEM = [(step.number, step.name, product_version()) for step in STEPS]


def test_a_keyspace_is_made_and_its_steps_are_recorded(cassandra: Session, own: str) -> None:
    store = Store(cassandra, own)
    assert read_gap(store).what == tuple(str(step) for step in STEPS)
    create_schema(cassandra, own)
    assert finished(cassandra, own) == ALL_OF_THEM
    assert read_gap(store).todo == ()
    told: list[str] = []
    upgrade(store, told=told.append)
    assert told == []


def test_killed_midway_again_and_again_it_ends_as_if_made_at_once(
    cassandra: Session, own: str
) -> None:
    lives = 0
    while read_gap(Store(cassandra, own)).todo:
        try:
            upgrade(DyingStore(cassandra, own, lives))
        except Killed:
            lives += 1
    assert lives > 1
    assert finished(cassandra, own) == ALL_OF_THEM
    after: Schema = Store(cassandra, own).tables()
    cassandra.execute(f"DROP KEYSPACE {own}", timeout=120)
    create_schema(cassandra, own)
    assert Store(cassandra, own).tables() == after


def copy_watches(store: RowStore) -> None:
    read = store.prepare("SELECT name, since, WRITETIME(since) FROM $ks.watches")
    write = store.prepare("INSERT INTO $ks.spans (name, since) VALUES (?, ?) USING TIMESTAMP ?")
    rows = store.rows("reading the watches", read)
    store.run("copying the watches", ((write, tuple(row)) for row in rows))


SPANS = """
CREATE TABLE IF NOT EXISTS $ks.spans (
    name text,
    since bigint,
    PRIMARY KEY (name)
);
ALTER TABLE $ks.watches ADD IF NOT EXISTS until bigint;
"""
WITH_A_COPY = (*STEPS, SchemaStep(len(STEPS) + 1, "watches as spans", SPANS, copy_watches))


def test_a_step_that_copies_rows_is_killed_anywhere_and_copies_them_all(
    cassandra: Session, own: str
) -> None:
    create_schema(cassandra, own)
    watches = {f"stream {number}": 1_700_000_000_000_000 + number for number in range(5)}
    for name, since in watches.items():
        cassandra.execute(
            f"INSERT INTO {own}.watches (name, since) VALUES (%s, %s) USING TIMESTAMP 100",
            (name, since),
        )
    store, lives = Store(cassandra, own), 0
    while read_gap(store, steps=WITH_A_COPY).todo:
        try:
            upgrade(DyingStore(cassandra, own, lives), steps=WITH_A_COPY)
        except Killed:
            lives += 1
    assert lives > len(watches)
    rows = list(cassandra.execute(f"SELECT name, since, WRITETIME(since) AS at FROM {own}.spans"))
    assert {row.name: row.since for row in rows} == watches
    assert {row.at for row in rows} == {100}
    cassandra.execute(f"INSERT INTO {own}.spans (name, since) VALUES ('stream 1', 7)")
    copy_watches(store)
    changed = cassandra.execute(f"SELECT since FROM {own}.spans WHERE name = 'stream 1'").one()
    assert changed.since == 7, "a late copy replaced what was written since"


def test_rows_are_not_copied_beside_a_live_stream(cassandra: Session, own: str) -> None:
    create_schema(cassandra, own)
    store = Store(cassandra, own)
    lease = Lease(CassandraLease(store), "mail/repair", Holder("a stream", "host:7"))
    lease.acquire()
    with pytest.raises(AlreadyRunning, match="on host host:7 holds the lease mail/repair"):
        upgrade(store, steps=WITH_A_COPY)
    assert read_gap(store, steps=WITH_A_COPY).copies
    lease.release()
    upgrade(store, steps=WITH_A_COPY)
    assert read_gap(store, steps=WITH_A_COPY).todo == ()


def test_what_somebody_dropped_is_made_again(cassandra: Session, own: str) -> None:
    create_schema(cassandra, own)
    store = Store(cassandra, own)
    cassandra.execute(f"DROP TABLE {own}.expiries", timeout=60)
    cassandra.execute(f"ALTER TABLE {own}.tallies DROP size", timeout=60)
    gap = read_gap(store)
    assert gap.what == ("table expiries", "column tallies.size")
    for statement in gap.cql:
        store.change(statement)
        store.change(statement)
    assert read_gap(store).todo == ()


def test_a_newer_keyspace_is_refused(cassandra: Session, own: str) -> None:
    create_schema(cassandra, own)
    cassandra.execute(
        f"INSERT INTO {own}.schema_steps (sequence, number, name) VALUES ('own', 1000, 'later')"
    )
    with pytest.raises(OtherSchema, match=f"keyspace {own} is at version 1000"):
        upgrade(Store(cassandra, own))


def test_a_keyspace_of_an_older_shape_is_refused(cassandra: Session, own: str) -> None:
    create_schema(cassandra, own)
    cassandra.execute(
        f"INSERT INTO {own}.schema_steps (sequence, number, name)"
        " VALUES ('own', 1, 'the first tables')"
    )
    with pytest.raises(OtherSchema, match=f"run DROP KEYSPACE {own}"):
        upgrade(Store(cassandra, own))


def test_tables_with_other_keys_are_refused(cassandra: Session, own: str) -> None:
    create_schema(cassandra, own)
    cassandra.execute(f"DROP TABLE {own}.expiries", timeout=60)
    cassandra.execute(f"CREATE TABLE {own}.expiries (hour int PRIMARY KEY)", timeout=60)
    with pytest.raises(OtherSchema, match="as its table expiries shows"):
        upgrade(Store(cassandra, own))


def test_a_statement_that_fails_is_refused_with_the_statement(cassandra: Session, own: str) -> None:
    with pytest.raises(Refused, match=f"CREATE TABLE {own}.x"):
        Store(cassandra, own).change(f"CREATE TABLE {own}.x (a text PRIMARY KEY)")
