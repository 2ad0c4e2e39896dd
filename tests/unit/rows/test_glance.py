"""The glance beside its property: what it reads, what it refuses, what a worker makes of it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from uuid import UUID

import pyarrow as pa
import pytest

from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.family import Projection, bind
from reconcilers.declared.raw import RawCell, RawKey, raw_shape
from reconcilers.rows import belonging as belonging_module
from reconcilers.rows.belonging import MOST_ANSWERS, Belonging
from reconcilers.rows.memory import Entry
from reconcilers.words.errors import Refused, Unreachable
from reconcilers.words.key import KeyColumn
from reconcilers.words.model import Row, Slot, Value, Wake
from streaming.pipeline.worker import BatchLook, Connections, Job, look_task
from streaming.settings import Settings
from tests.builders.clocks import OneNode
from tests.builders.glances import WakesGlance, glance_of
from tests.builders.indexes import APPLICABLE, DELETED, INDEX_SCHEMA, INDEXED, LISTS, UNSEEN
from tests.builders.looks import SCHEMA, no_examiner
from tests.builders.permits import unpaused
from tests.builders.rights import RIGHTS, is_of_a_user
from tests.builders.rows import COMPLETE, LONG_AGO, MAILBOX, MESSAGE_ID, OTHER_ID
from tests.fakes.checkpoints.memory import MemoryExpiries, MemoryJournal, MemoryLineage
from tests.fakes.checkpoints.tallies import MemoryTallies
from tests.fakes.memory_tables import MemoryTables
from tests.fakes.raw_tables import RawMemoryLineage, RawMemoryTables, encoded, shape_of

READ_BY_ALL = (INDEXED.truth.table, LISTS.table)
RIGHT: dict[str, Value] = {
    **COMPLETE,
    "flagdeleted": False,
    "flagrecent": False,
    "userflags": frozenset(),
}


@dataclass
class Mailbox:
    """Messages that are right, seen, and remembered; their UIDs as they are added."""

    tables: RawMemoryTables
    lineage: MemoryLineage

    def add(self, uid: int, messageid: UUID = MESSAGE_ID) -> Wake:
        cells = RIGHT | {"uid": uid, "messageid": messageid}
        for table in READ_BY_ALL:
            self.tables.put(table, **cells)
        slot = Slot(MAILBOX, uid)
        self.lineage.remember([Entry(messageid, slot, in_truth=True, recorded_at=LONG_AGO)])
        return Wake(slot.key, messageid, from_truth=True)

    @property
    def glance(self) -> WakesGlance:
        memory = RawMemoryLineage(INDEXED, self.lineage)
        return glance_of(INDEXED, self.tables, memory)


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox(RawMemoryTables(INDEXED, INDEX_SCHEMA), MemoryLineage())


# --- wakes that tell of more ---------------------------------------------------------------------

KEY = (MAILBOX, 7)
CHANGE = Wake(KEY, MESSAGE_ID, from_truth=True)


@pytest.mark.parametrize(
    "other",
    [
        replace(CHANGE, looked_again=True),
        Wake(KEY, None, deleted_at=LONG_AGO, deleted_from=LISTS.table),
        Wake(KEY, None, deleted_from=LISTS.table),
        Wake(KEY, None, deleted_at=LONG_AGO),
        Wake(KEY, MESSAGE_ID, expires_at=LONG_AGO),
        Wake(KEY, OTHER_ID),
        Wake((MAILBOX, None), MESSAGE_ID),
        Wake((None, None), MESSAGE_ID),
        Wake((MAILBOX, None), None),
    ],
    ids=str,
)
def test_what_another_wake_may_mean_too_is_left(mailbox: Mailbox, other: Wake) -> None:
    mailbox.add(7)
    beside = mailbox.add(8, OTHER_ID)
    elsewhere = replace(beside, key=(OTHER_ID, 8))
    for wakes in ([CHANGE, other, elsewhere], [other, elsewhere, CHANGE]):
        assert mailbox.glance.at(wakes, LONG_AGO).left == wakes
    for harmless in (Wake((MAILBOX, None), UUID(int=5)), Wake((OTHER_ID, None), None)):
        assert mailbox.glance.at([CHANGE, harmless], LONG_AGO).left == [harmless]


@pytest.mark.parametrize("column", [*INDEXED.listing.columns, *INDEXED.truth.required])
@pytest.mark.parametrize("cell", [None, b"", b"\x01"])
def test_a_cell_that_differs_or_is_required_and_empty_is_left(
    mailbox: Mailbox, column: str, cell: RawCell
) -> None:
    """On one side, and, where it is required, on both."""
    mailbox.add(7)
    (listed,) = mailbox.tables.rows[LISTS.table]
    before, listed[column] = listed.get(column), cell
    assert bool(mailbox.glance.at([CHANGE], LONG_AGO).left) == (cell != before)
    if column in INDEXED.truth.required and not cell:
        mailbox.tables.rows[INDEXED.truth.table][0][column] = cell
        assert mailbox.glance.at([CHANGE], LONG_AGO).left == [CHANGE]


# --- what is read --------------------------------------------------------------------------------


def test_a_change_that_names_no_source_is_passed_too(mailbox: Mailbox) -> None:
    mailbox.add(7)
    assert list(mailbox.glance.at([Wake(KEY, None), CHANGE], LONG_AGO).left) == []


def test_what_is_right_is_passed(mailbox: Mailbox) -> None:
    wakes = [mailbox.add(7), mailbox.add(8, OTHER_ID)]
    glanced = mailbox.glance.at(wakes, LONG_AGO)
    assert (list(glanced.left), glanced.examined, glanced.changes) == ([], 2, {MAILBOX: 2})
    assert APPLICABLE.table not in mailbox.tables.read


@pytest.mark.parametrize(
    ("there", "passed"),
    [({"a", "b", "c"}, True), ({"a", "b"}, True), ({"a"}, False), (set(), False), (None, False)],
)
def test_what_its_mailbox_has_collected_all_of_is_passed(
    mailbox: Mailbox, there: set[str] | None, *, passed: bool
) -> None:
    mailbox.add(7)
    flags = encoded("set<text>", frozenset("ab"))
    for table in (INDEXED.truth.table, LISTS.table):
        mailbox.tables.rows[table][0]["userflags"] = flags
    if there is not None:
        mailbox.tables.put(APPLICABLE.table, mailboxid=MAILBOX, userflags=frozenset(there))
    assert (list(mailbox.glance.at([CHANGE], LONG_AGO).left) == []) == passed


def test_of_what_is_not_remembered_no_table_is_asked_for_a_row(mailbox: Mailbox) -> None:
    keys: list[RawKey] = []

    class Watched(RawMemoryTables):
        def listing(self, asked: Iterable[RawKey]) -> Iterator[tuple[RawCell, ...]]:
            keys.extend(asked)
            return super().listing(keys)

    mailbox.tables = Watched(INDEXED, INDEX_SCHEMA)
    wakes = [mailbox.add(7)]
    mailbox.lineage = MemoryLineage()
    assert mailbox.glance.at(wakes, LONG_AGO).left == wakes
    assert keys == []


def test_without_a_change_nothing_is_asked(mailbox: Mailbox) -> None:
    again = replace(mailbox.add(7), looked_again=True)
    assert mailbox.glance.at([again], LONG_AGO).left == [again]
    assert mailbox.tables.read == []


@pytest.mark.parametrize("table", [*READ_BY_ALL, UNSEEN.table])
def test_a_table_that_refuses_leaves_all_to_the_look(mailbox: Mailbox, table: str) -> None:
    wakes = [mailbox.add(7)]
    _fail(mailbox.tables, table, Refused(table))
    assert mailbox.glance.at(wakes, LONG_AGO).left == wakes


def test_a_table_that_cannot_be_reached_fails_the_glance(mailbox: Mailbox) -> None:
    wakes = [mailbox.add(7)]
    _fail(mailbox.tables, LISTS.table, Unreachable("gone"))
    with pytest.raises(Unreachable):
        mailbox.glance.at(wakes, LONG_AGO)


def _fail(tables: RawMemoryTables, table: str, error: Exception) -> None:
    class Failing(list[str]):
        def append(self, asked: str) -> None:
            if asked == table:
                raise error

    tables.read = Failing()


# --- families that have one ----------------------------------------------------------------------


def test_families_without_a_glance() -> None:
    assert raw_shape(bind(MAILBOX_TALLY, {"imapuidtable": INDEX_SCHEMA["imapuidtable"]})) is None
    (group, uid) = INDEXED.key
    assert raw_shape(replace(INDEXED, key=(group, replace(uid, type="int")))) is None
    nameless = replace(LISTS, identity="elsewhere")
    assert raw_shape(replace(INDEXED, projections=(nameless,))) is None
    gathering = replace(LISTS, collects="userflags")
    assert raw_shape(replace(INDEXED, projections=(gathering,))) is None
    assert raw_shape(INDEXED) is not None


def test_both_sides_end_with_what_is_copied() -> None:
    for family in (INDEXED, RIGHTS):
        shape = shape_of(family)
        truth, listing = shape.copied
        assert shape.truth[truth:] == shape.listing[listing:]
        assert shape.listing[: len(family.key)] == family.listing.key
        assert shape.truth[: len(family.key)] == family.truth.slot
        places = [(shape.truth[one], shape.listing[other]) for one, other in shape.same]
        assert places == [("messageid", "messageid")] * (family is INDEXED)
        assert {shape.truth[at] for at in shape.required} == set(family.truth.required)


def test_what_the_listing_lacks_is_read_of_the_truth_between_key_and_copies() -> None:
    """What a row must have, and what an index goes by."""
    lacking = {"userflags", "modseq", "headercontent", "flagseen", "flagdeleted", "flagrecent"}
    lacking |= {"flaguser", "threadid", "internaldate", "fullcontentoctets"}
    listing = {
        name: kind for name, kind in INDEX_SCHEMA[LISTS.table].items() if name not in lacking
    }
    shape = shape_of(bind(INDEXED, INDEX_SCHEMA | {LISTS.table: listing}))
    more = ("fullcontentoctets", "headercontent", "internaldate", "modseq", "userflags")
    copied = ("bodystartoctet", "save_date")
    assert shape.truth == ("mailboxid", "uid", "messageid", *more, *copied)
    assert shape.listing == ("mailboxid", "uid", "messageid", *copied)
    assert (shape.copied, shape.same, shape.source) == ((8, 3), ((2, 2),), (2, 2))


def test_keys_are_sent_by_their_types() -> None:
    column = KeyColumn("user", "text", "user")
    shape = raw_shape(replace(RIGHTS, key=(column, RIGHTS.key[1])))
    assert shape is not None
    user, mailboxid, source = shape.encode
    assert (user("bö"), mailboxid(MAILBOX), source(MAILBOX)) == (
        "bö".encode(),
        MAILBOX.bytes,
        MAILBOX.bytes,
    )


# --- belonging -----------------------------------------------------------------------------------

COLUMNS = ("a", "b", "c")
FLAGS: tuple[RawCell, ...] = (None, b"", b"\0", b"\x01")


def _decoded(_column: str, cell: RawCell) -> Value:
    return cell == b"\x01" if cell else None


def _some(truth: Row) -> bool:
    """Reads a second cell by what the first one is, and one that is nowhere."""
    if truth.get("b") is True:
        return truth.get("a") is None and truth.get("nowhere") is None
    return truth.get("c") is not True


@pytest.mark.parametrize(
    "belongs",
    [_some, lambda _: True, lambda row: None in row.cells.values(), lambda row: len(row.cells) > 2],
    ids=["in turn", "none", "all", "how many"],
)
def test_a_declaration_is_asked_once_for_each_combination_of_what_it_reads(
    belongs: object,
) -> None:
    asked: list[Row] = []

    def counted(truth: Row) -> bool:
        asked.append(truth)
        assert callable(belongs)
        return bool(belongs(truth))

    index = replace(DELETED, belongs=counted)
    belonging = Belonging(index, COLUMNS, _decoded)
    rows = list(product(FLAGS, repeat=3))
    for _ in range(2):
        for row in rows:
            cells = {name: _decoded(name, cell) for name, cell in zip(COLUMNS, row, strict=True)}
            assert callable(belongs)
            assert belonging.of(row) == belongs(Row(cells))
        assert len(asked) <= len(rows)
    first = len(asked)
    for row in rows:
        belonging.of(row)
    assert len(asked) == first


def test_answers_are_forgotten_before_there_are_too_many() -> None:
    index = Projection("users", "users", ("key",), belongs=is_of_a_user)
    belonging = Belonging(index, ("key",), lambda _column, cell: (cell or b"").decode())
    for number in range(MOST_ANSWERS + 10):
        assert belonging.of((b"%d" % number,))
        assert not belonging.of((b"$%d" % number,))
    assert belonging._answers <= MOST_ANSWERS


def that_takes_down_what_is_asked() -> tuple[Belonging, list[Value]]:
    """Every row belongs; of each that is not known by its cells the key is taken down."""
    asked: list[Value] = []

    def told(truth: Row) -> bool:
        asked.append(truth.get("key"))
        return True

    index = Projection("users", "users", ("key",), belongs=told)
    belonging = Belonging(index, ("key",), lambda _column, cell: (cell or b"").decode())
    return belonging, asked


def test_ten_thousand_answers_are_known_and_no_more() -> None:
    belonging, asked = that_takes_down_what_is_asked()
    for number in [*range(10_000), 0, 10_000, 0]:
        belonging.of((b"%d" % number,))
    assert asked == [*map(str, range(10_000)), "10000", "0"]


def test_so_many_answers_are_known_at_most_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(belonging_module, "MOST_ANSWERS", 3)
    belonging, asked = that_takes_down_what_is_asked()
    for each in "abcabcdefdefgfed":
        assert belonging.of((each.encode(),))
    assert "".join(map(str, asked)) == "abcdefgfed"


# --- in a worker ---------------------------------------------------------------------------------


def test_a_worker_looks_at_what_the_glance_leaves_and_counts_both(mailbox: Mailbox) -> None:
    mailbox.add(7)
    mailbox.add(2_500, OTHER_ID)
    lineage, tallies = MemoryLineage(), MemoryTallies()
    lineage.watch_from(LONG_AGO)

    def connect(*_: object) -> Connections:
        tables, journal = MemoryTables(), MemoryJournal()
        glance = mailbox.glance.glance
        return Connections(
            tables,
            lineage,
            journal,
            MemoryExpiries(),
            tallies,
            OneNode().watch(),
            unpaused(),
            glance,
        )

    plain = {"mailboxid": str(MAILBOX), "changes": 2, "from_truth": False}
    plain |= {"looked_again": False, "heartbeat": False}
    keys = [plain | {"uid": uid} for uid in (7, 2_500, 5_000)]
    batch = pa.RecordBatch.from_pylist(keys, schema=SCHEMA)
    (result,) = look_task(Job(Settings(), INDEXED, "suspects", connect, no_examiner))([batch])
    found = pickle.loads(result.to_pydict()["result"][0])
    assert isinstance(found, BatchLook)
    assert (found.examined, found.suspects) == (3, [])
    assert found.changes == {MAILBOX: 6}
    assert tallies.of_mailbox(MAILBOX).chunks.keys() == {0, 2, 5}
