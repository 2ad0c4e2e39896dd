"""What a glance reads, undecoded: the fake gives the bytes that Cassandra sends."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraLineage, CassandraRawLineage, RawReads, Store, levels
from checkpoints.lineage import Lineage, RawLineage
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, Schema, bind
from reconcilers.declared.raw import BIGINT, RawKey, RawRow
from reconcilers.rows.memory import Entry
from reconcilers.words.errors import Refused
from reconcilers.words.model import Slot, Value, Wake
from streaming.steps.ports import RawTables
from streaming.tables import UndecodedTables
from streaming.tables.rate_limit import RateLimiter
from tests.builders.glances import WakesGlance, glance_of
from tests.builders.indexes import INDEX_SCHEMA
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.raw_tables import (
    RawMemoryLineage,
    RawMemoryTables,
    encoded,
    raw_key,
    shape_of,
)
from tests.sessions import create_keyspace

AT = 1_700_000_000_000_000
DATE = 1_793_491_200_000
CELLS: dict[str, Value] = {
    "modseq": 2**40,
    "flagseen": True,
    "flagdeleted": False,
    "userflags": frozenset({"ü b", "a"}),
    "threadid": UUID("22222222-0000-1000-8000-000000000002"),
    "bodystartoctet": 100,
    "fullcontentoctets": 2000,
    "headercontent": "x",
}
"""Those that James's tables have, too; the others are null."""


@dataclass
class Kept:
    """A family, and tables and memory that hold rows of it."""

    family: Family
    tables: RawTables
    put: Callable[..., None]
    lineage: Lineage
    raw_lineage: RawLineage

    @property
    def glance(self) -> WakesGlance:
        return glance_of(self.family, self.tables, self.raw_lineage)

    def key(self, slot: Slot) -> RawKey:
        return raw_key(self.family.key, slot.key)

    def put_both(self, slot: Slot, source: UUID) -> None:
        """The same cells in the truth and in the listing."""
        mailboxid, uid = slot.key
        key: dict[str, Value] = {"mailboxid": mailboxid, "uid": uid}
        self.put("imapuidtable", messageid=source, **key, **CELLS)
        self.put("messageidtable", messageid=source, **key, **CELLS)


@pytest.fixture
def kept(kind: str, request: pytest.FixtureRequest) -> Kept:
    if kind == "memory":
        return in_memory()
    keyspace = request.getfixturevalue("mail_keyspace")
    session: Session = request.getfixturevalue("cassandra")
    return in_cassandra(session, keyspace, request.getfixturevalue("store"))


def in_memory() -> Kept:
    columns = dict.fromkeys(CELLS, "")
    schema: Schema = {
        table: {
            column: kind
            for column, kind in kinds.items()
            if table not in {"imapuidtable", "messageidtable"}
            or column in {*columns, "mailboxid", "uid", "messageid", "internaldate", "flagrecent"}
        }
        for table, kinds in INDEX_SCHEMA.items()
    }
    family = bind(MESSAGE, schema)
    tables, lineage = RawMemoryTables(family, schema), MemoryLineage()
    return Kept(family, tables, tables.put, lineage, RawMemoryLineage(family, lineage))


def in_cassandra(session: Session, keyspace: str, store: Store) -> Kept:
    columns = session.cluster.metadata.keyspaces[keyspace].tables
    schema: Schema = {
        name: {each.name: each.cql_type for each in table.columns.values()}
        for name, table in columns.items()
    }
    family = bind(MESSAGE, schema)

    def put(table: str, **cells: Value) -> None:
        marks = ", ".join("?" for _ in cells)
        cql = f"INSERT INTO {keyspace}.{table} ({', '.join(cells)}) VALUES ({marks})"
        session.execute(session.prepare(cql), list(cells.values()))

    reads = RawReads(session, levels().each)
    tables = UndecodedTables(reads, keyspace, family, shape_of(family), RateLimiter(10_000))
    raw_lineage = CassandraRawLineage(reads, store.keyspace, family)
    return Kept(family, tables, put, CassandraLineage(store, family), raw_lineage)


@pytest.fixture
def slot() -> Slot:
    return Slot(uuid.uuid1(), 7)


def test_rows_come_as_they_are_sent(kept: Kept, slot: Slot) -> None:
    source, shape = uuid.uuid1(), shape_of(kept.family)
    kept.put_both(slot, source)
    kept.put_both(Slot(slot.group, 8), uuid.uuid1())
    types = INDEX_SCHEMA["imapuidtable"] | {"mailboxid": "timeuuid", "uid": "bigint"}
    cells = CELLS | {"messageid": source, "mailboxid": slot.group, "uid": 7}
    expected = {name: encoded(types[name], value) for name, value in cells.items()}
    (truth,) = kept.tables.truth([source.bytes])
    assert truth == tuple(expected.get(column) for column in shape.truth)
    (row,) = kept.tables.listing([kept.key(slot)])
    assert row == tuple(expected.get(column) for column in shape.listing)


def test_rows_of_several_keys(kept: Kept, slot: Slot) -> None:
    """More than are read at once, of two groups."""
    slots = [*(Slot(slot.group, uid) for uid in range(1, 250)), Slot(uuid.uuid1(), 1)]
    for each in slots[::3]:
        mailboxid, uid = each.key
        kept.put("messageidtable", mailboxid=mailboxid, uid=uid)
        kept.put("messagedeleted", mailboxid=mailboxid, uid=uid)
    keys = {kept.key(each) for each in slots[::3]}
    asked = list(map(kept.key, slots))
    assert {row[:2] for row in kept.tables.listing(asked)} == keys
    index = next(each for each in kept.family.projections if each.table == "messagedeleted")
    assert set(kept.tables.index(index, asked)) == keys
    assert list(kept.tables.index(index, [])) == []
    assert list(kept.tables.truth([])) == []


def test_what_a_group_has_collected(kept: Kept, slot: Slot) -> None:
    index = next(each for each in kept.family.projections if each.table == "applicableflag")
    empty, gone = uuid.uuid1(), uuid.uuid1()
    kept.put("applicableflag", mailboxid=slot.group, userflags=frozenset({"ü b", "a"}))
    kept.put("applicableflag", mailboxid=empty, userflags=None)
    assert isinstance(slot.group, UUID)
    asked = [(each.bytes,) for each in (slot.group, empty, gone)]
    found = dict(kept.tables.collected(index, asked))
    assert found[(slot.group.bytes,)] == {"ü b", "a"}
    assert found.get((empty.bytes,), frozenset()) == frozenset()
    assert (gone.bytes,) not in found


def test_a_cell_has_the_value_that_a_look_sees(kept: Kept, slot: Slot) -> None:
    source, shape = uuid.uuid1(), shape_of(kept.family)
    kept.put_both(slot, source)
    (truth,) = kept.tables.truth([source.bytes])
    read = {
        column: kept.tables.decoded(column, cell)
        for column, cell in zip(shape.truth, truth, strict=True)
    }
    wanted = CELLS | {"messageid": source, "mailboxid": slot.group, "uid": 7}
    assert {column: read[column] for column in wanted} == wanted
    assert read["internaldate"] is None
    assert kept.tables.decoded("userflags", None) == frozenset()


def test_entries_come_as_they_are_sent(kept: Kept, slot: Slot) -> None:
    one, other = uuid.uuid1(), uuid.uuid1()
    elsewhere = Slot(slot.group, 8)
    kept.lineage.remember([Entry(one, slot, in_truth=True, recorded_at=AT)])
    kept.lineage.expire([Entry(other, slot, in_truth=False)])
    kept.lineage.remember([Entry(one, elsewhere, in_truth=False)])
    key = kept.key(slot)
    found = set(kept.raw_lineage.entries([key, kept.key(elsewhere), kept.key(Slot(one, 1))]))
    (expiring,) = [entry for entry in found if entry[-1] is not None]
    assert expiring[:-1] == (*key, other.bytes, None, None)
    assert found - {expiring} == {
        (*key, one.bytes, b"\x01", BIGINT.pack(AT), None),
        (*kept.key(elsewhere), one.bytes, None, None, None),
    }


def test_what_is_right_is_passed_and_what_is_not_is_left(kept: Kept, slot: Slot) -> None:
    source, other = uuid.uuid1(), uuid.uuid1()
    wrong = Slot(slot.group, 8)
    for place, of in ((slot, source), (wrong, other)):
        mailboxid, uid = place.key
        key: dict[str, Value] = {"mailboxid": mailboxid, "uid": uid, "messageid": of}
        right = CELLS | {"internaldate": DATE, "userflags": None, "flagseen": place == slot}
        kept.put("imapuidtable", **key, **right)
        kept.put("messageidtable", **key, **right)
        kept.lineage.remember([Entry(of, place, in_truth=True, recorded_at=AT)])
    wakes = [Wake(slot.key, source, from_truth=True), Wake(wrong.key, None, changes=2)]
    glanced = kept.glance.at(wakes, AT)
    assert list(glanced.left) == wakes[1:], "it is missing in the index of unseen UIDs"
    assert (glanced.changes, glanced.touched, glanced.examined) == ({slot.group: 1}, (slot,), 1)
    assert kept.glance.at(wakes, AT + 1).left == wakes


# --- only Cassandra can do this ------------------------------------------------------------------


@pytest.fixture
def two_tables(cassandra: Session) -> Iterator[TwoTables]:
    keyspace = f"glance_{uuid.uuid4().hex[:12]}"
    create_keyspace(cassandra, keyspace)
    cassandra.execute(f"CREATE TYPE {keyspace}.place (x int)")
    yield TwoTables(cassandra, keyspace)
    cassandra.execute(f"DROP KEYSPACE {keyspace}", timeout=60)


@dataclass
class TwoTables:
    """A truth and its listing with a column of these types each, and one row of the truth."""

    session: Session
    keyspace: str

    def make(self, of_truth: str, of_listing: str) -> UndecodedTables:
        keys = {"imapuidtable": "messageid, mailboxid, uid", "messageidtable": "mailboxid, uid"}
        kinds = {"imapuidtable": of_truth, "messageidtable": of_listing}
        schema: Schema = {
            table: {"mailboxid": "timeuuid", "uid": "bigint", "messageid": "timeuuid", "at": "int"}
            for table in kinds
        }
        for table, columns in schema.items():
            created = {**columns, "at": kinds[table]}  # one of them would be refused at a start
            typed = ", ".join(f"{column} {kind}" for column, kind in created.items())
            cql = f"CREATE TABLE {self.keyspace}.{table} ({typed}, PRIMARY KEY ({keys[table]}))"
            self.session.execute(cql)
        family = bind(replace(MESSAGE, projections=MESSAGE.projections[:1]), schema)
        reads, pace = RawReads(self.session, levels().each), RateLimiter(10_000)
        return UndecodedTables(reads, self.keyspace, family, shape_of(family), pace)

    def add(self, at: str) -> UUID:
        source = uuid.uuid1()
        self.session.execute(
            f"INSERT INTO {self.keyspace}.imapuidtable (mailboxid, uid, messageid, at)"
            f" VALUES (%s, 7, %s, {at})",
            (source, source),
        )
        return source


def in_the_end(tables: UndecodedTables, source: UUID) -> tuple[int, list[RawRow]]:
    """How often it was refused, and the row at last."""
    for refused in range(3):
        with suppress(Refused):
            return refused, list(tables.truth([source.bytes]))
    raise AssertionError("refused again and again")


@pytest.mark.stack
def test_where_a_column_has_two_types_a_glance_is_refused(two_tables: TwoTables) -> None:
    tables = two_tables.make("int", "bigint")
    for _ in range(2):
        with pytest.raises(Refused, match="another type"):
            list(tables.truth([two_tables.add("1").bytes]))


@pytest.mark.stack
def test_a_type_that_grows_is_seen_by_the_answer(two_tables: TwoTables) -> None:
    """The select stays the same, its columns do not: nothing is taken for bytes that is not."""
    tables = two_tables.make("frozen<place>", "frozen<place>")
    source = two_tables.add("{x: 1}")
    (before,) = tables.truth([source.bytes])
    assert before[-1] == b"\0\0\0\4" + b"\0\0\0\1"
    two_tables.session.execute(f"ALTER TYPE {two_tables.keyspace}.place ADD y int")
    refused, rows = in_the_end(tables, source)
    assert refused > 0
    assert rows == [before]


@pytest.mark.stack
def test_another_column_changes_nothing_and_one_that_is_gone_is_refused(
    two_tables: TwoTables,
) -> None:
    tables = two_tables.make("int", "int")
    source = two_tables.add("1")
    (before,) = tables.truth([source.bytes])
    truth = f"{two_tables.keyspace}.imapuidtable"
    two_tables.session.execute(f"ALTER TABLE {truth} ADD unrelated int")
    _refused, rows = in_the_end(tables, source)
    assert rows == [before]
    two_tables.session.execute(f"ALTER TABLE {truth} DROP at")
    for _ in range(2):
        with pytest.raises(Refused):
            list(tables.truth([source.bytes]))
