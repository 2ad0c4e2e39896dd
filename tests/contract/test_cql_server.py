"""The fake CQL server against the real one: the same statements, known alike, the same rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraLineage, CassandraTallies, Store, create_schema
from checkpoints.tallies import Chunk, ChunkSums
from deploy.mailserver import james
from reconcilers.declared.family import Family, bind
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Sum
from reconcilers.rows.memory import Entry, Watching
from reconcilers.words.millis import Millis
from reconcilers.words.model import Row, Slot
from streaming.settings import Settings
from streaming.tables import CounterTables, Tables, schema_of
from streaming.tables.session import open_session
from tests.builders.mail_rows import (
    RECORDED_AT,
    WATCHED_SINCE,
    MailRow,
    fake_tables,
    lineage_rows,
    rows_by_table,
    truth_rows,
)
from tests.fakes.cql_server import serving
from tests.fakes.recording_session import RecordingSession

TTL_SECONDS, WIDTH, AT = 86_400, 1_000, 1_700_000_000_000_000


@dataclass
class Asked:
    """A server that holds these rows; ``truth`` are the rows of the truth."""

    session: RecordingSession
    settings: Settings
    truth: list[MailRow]

    @property
    def family(self) -> Family:
        schema = schema_of(self._real, self.settings.cassandra.keyspace)
        return bind(self.settings.families()[0], schema)

    @property
    def tables(self) -> Tables:
        return Tables(self._real, self.settings.cassandra, self.family)

    @property
    def counters(self) -> CounterTables:
        return CounterTables(self._real, self.settings.cassandra, self.family, 1_000_000)

    @property
    def tallies(self) -> CassandraTallies:
        store = Store(self._real, self.settings.cassandra.own_keyspace)
        return CassandraTallies(store, WIDTH)

    @property
    def lineage(self) -> CassandraLineage:
        return CassandraLineage(Store(self._real, self.settings.cassandra.own_keyspace))

    @property
    def slots(self) -> list[Slot]:
        return [Slot(row["mailboxid"], row["uid"]) for row in self.truth]

    @property
    def _real(self) -> Any:
        return self.session


def mail() -> list[MailRow]:
    """Some twenty rows, with a cell of each kind that is null, false or empty, and a copy."""
    first, second, third, *rest = truth_rows(20, 4)
    first |= {"userflags": set(), "headercontent": "", "save_date": None, "flagdeleted": True}
    second |= {"threadid": None, "flagseen": None, "flagrecent": True, "bodystartoctet": 0}
    third |= {"userflags": {"ü b", "a"}, "modseq": 2**62, "flagdeleted": None}
    copied = rest[-1] | {"mailboxid": first["mailboxid"], "uid": 99}
    return [first, second, third, *rest, copied]


def own_rows(truth: list[MailRow]) -> dict[str, list[MailRow]]:
    """The first row's lineage is about to expire, the second's has no time, the third is told."""
    found = lineage_rows(truth)
    for name in ("lineage_by_row", "lineage_by_message"):
        first, second, third, *rest = found[name]
        first, second = first | {"ttl(seen)": TTL_SECONDS}, second | {"recorded_at": None}
        found[name] = [first, second, third | {"in_truth": None}, *rest]
    return found


def counted_rows(truth: list[MailRow]) -> list[MailRow]:
    """Two chunks of the first mailbox, and one of another width."""
    of_it = {"mailboxid": truth[0]["mailboxid"], "messages": 3, "unseen": 2, "size": 1}
    return [
        of_it | {"width": width, "chunk": chunk, "counted_at": AT, "marked_at": marked}
        for width, chunk, marked in ((WIDTH, -1, None), (WIDTH, 0, AT + 1), (WIDTH + 1, 0, None))
    ]


def write(session: Session, keyspace: str, rows: Mapping[str, list[MailRow]]) -> None:
    """Write these rows to real tables; a cell that is null is not written."""
    for table, some in rows.items():
        for row in some:
            cells = {name: value for name, value in row.items() if value is not None}
            ttl = f" USING TTL {cells.pop('ttl(seen)')}" if "ttl(seen)" in cells else ""
            marks = ", ".join("?" * len(cells))
            cql = f"INSERT INTO {keyspace}.{table} ({', '.join(cells)}) VALUES ({marks}){ttl}"
            session.execute(session.prepare(cql), list(cells.values()))


@pytest.fixture(scope="module", params=("fake", pytest.param("cassandra", marks=pytest.mark.stack)))
def asked(request: pytest.FixtureRequest) -> Iterator[Asked]:
    truth = mail()
    james_rows, ours = rows_by_table(truth), own_rows(truth) | {"tallies": counted_rows(truth)}
    if request.param == "fake":
        counter = {"mailboxid": truth[0]["mailboxid"], "count": 7, "unseen": 2}
        whole = james_rows | ours | {"mailboxcounters": [counter]}
        with serving(list(fake_tables("mail", "own", whole))) as port:
            yield from opened({"port": port, "keyspace": "mail", "own_keyspace": "own"}, truth)
        return
    stack, session = (request.getfixturevalue(name) for name in ("stack", "cassandra"))
    keyspace = f"asked_{uuid.uuid4().hex[:8]}"
    james.create_schema(session, keyspace)
    create_schema(session, f"{keyspace}_own")
    write(session, keyspace, james_rows)
    write(session, f"{keyspace}_own", ours)
    session.execute(
        f"UPDATE {keyspace}.mailboxcounters SET count = count + 7, unseen = unseen + 2"
        " WHERE mailboxid = %s",
        (truth[0]["mailboxid"],),
    )
    where = {"hosts": [stack.cassandra_host], "port": stack.cassandra_port}
    yield from opened({**where, "keyspace": keyspace, "own_keyspace": f"{keyspace}_own"}, truth)
    for each in (keyspace, f"{keyspace}_own"):
        session.execute(f"DROP KEYSPACE {each}")


def opened(cassandra: Mapping[str, Any], truth: list[MailRow]) -> Iterator[Asked]:
    settings = Settings.model_validate({"cassandra": cassandra})
    session = open_session(settings.cassandra)
    yield Asked(RecordingSession(session), settings, truth)
    session.cluster.shutdown()


def cells(row: MailRow, columns: tuple[str, ...]) -> dict[str, Any]:
    """The cells as a read of these columns gives them."""
    found = {name: row.get(name) for name in columns}
    for name in {"internaldate", "save_date"} & found.keys():
        found[name] = row[name] and Millis.of(row[name])
    return found | ({"userflags": frozenset(row["userflags"])} if "userflags" in found else {})


def test_the_tables_are_declared_alike(asked: Asked) -> None:
    columns = schema_of(asked.session.session, asked.settings.cassandra.keyspace)
    assert len(columns["imapuidtable"]) == 18
    assert columns["imapuidtable"]["userflags"] == "set<text>"
    assert columns["messageidtable"]["messageid"] == "timeuuid"


def test_a_message_has_its_truth_rows_as_they_were_written(asked: Asked) -> None:
    found = asked.tables.truth_rows([*(row["messageid"] for row in asked.truth), uuid.uuid1()])
    columns = tuple(asked.truth[0])
    expected = [cells(row, columns) for row in asked.truth]
    assert len(found) == len(asked.truth) - 1  # one is a copy of another's message
    assert [row.cells for row in sorted(flat(found), key=place)] == sorted(expected, key=at)


def flat(found: Mapping[Any, tuple[Row, ...]]) -> list[Row]:
    return [row for rows in found.values() for row in rows]


def at(row: Mapping[str, Any]) -> tuple[Any, int]:
    return row["mailboxid"], row["uid"]


def place(row: Row) -> tuple[Any, int]:
    return at(row.cells)


def test_a_slot_has_its_listed_row_as_it_was_written(asked: Asked) -> None:
    nowhere = Slot(asked.slots[0].group, 10_000)
    found = asked.tables.projection_rows(asked.family.listing, [*asked.slots, nowhere])
    columns = tuple(name for name in asked.truth[0] if name not in {"mailboxid", "uid"})
    expected = {
        slot: cells(row, columns) for slot, row in zip(asked.slots, asked.truth, strict=True)
    }
    assert {slot: without_key(row) for slot, row in found.items()} == expected


def without_key(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.cells.items() if name not in {"mailboxid", "uid"}}


def test_an_index_has_a_row_where_it_should(asked: Asked) -> None:
    for index in asked.family.projections[1:4]:
        found = asked.tables.projection_rows(index, asked.slots)
        belonging = (
            slot
            for slot, row in zip(asked.slots, asked.truth, strict=True)
            if index.belongs(Row(row))
        )
        assert found.keys() == set(belonging), index.name
    flags = asked.tables.projection_rows(asked.family.projections[4], asked.slots)
    assert flags[asked.slots[2]].get("userflags") >= {"ü b", "a"}  # type: ignore[operator]


def test_lineage_comes_back_by_row_and_by_message(asked: Asked) -> None:
    expected = [
        Entry(row["messageid"], slot, in_truth=True, recorded_at=RECORDED_AT)
        for slot, row in zip(asked.slots, asked.truth, strict=True)
    ]
    expected[0] = replace(expected[0], expiring=True)
    expected[1] = replace(expected[1], recorded_at=None)
    expected[2] = replace(expected[2], in_truth=False)
    by_row = asked.lineage.of_slots(asked.slots)
    assert by_row == {entry.slot: [entry] for entry in expected}
    by_message = asked.lineage.of_sources([row["messageid"] for row in asked.truth])
    found = [entry for entries in by_message.values() for entry in entries]
    assert sorted(found, key=lambda entry: entry.slot) == sorted(
        expected, key=lambda entry: entry.slot
    )
    assert asked.lineage.watching() == Watching(WATCHED_SINCE, None, "")


MARKS = {
    "imapuidtable": ([("in(messageid)", "list<timeuuid>")], None),
    "messageidtable": ([("mailboxid", "timeuuid"), ("in(uid)", "list<bigint>")], [0]),
    "lineage_by_row": ([("mailboxid", "uuid"), ("in(uid)", "list<bigint>")], [0]),
}
"""Of each read: its marks with their types, and which of them lead to the replica."""


LINEAGE_COLUMNS = {
    "messageid": "uuid",
    "mailboxid": "uuid",
    "uid": "bigint",
    "in_truth": "boolean",
    "recorded_at": "bigint",
    "had_at": "bigint",
    "ttl(seen)": "int",
}


def test_ranges_of_a_mailbox_come_back_up_to_a_limit(asked: Asked) -> None:
    listed = sorted(row["uid"] for row in asked.truth if row["mailboxid"] == asked.slots[0].group)
    assert len(listed) > 3
    mailbox = asked.truth[0]["mailboxid"]
    whole = asked.counters.listed_in([mailbox], (0, 2**63 - 1), len(listed))[mailbox]
    part = asked.counters.listed_in([mailbox], (listed[1], listed[-2]), len(listed))[mailbox]
    assert whole is not None
    assert part == whole[1:-1]
    assert [each.uid for each in whole] == listed
    others = {row["mailboxid"] for row in asked.truth} - {mailbox}
    found = asked.counters.listed_in([mailbox, *others], (0, 2**63 - 1), len(listed) - 1)
    assert {each for each, rows in found.items() if rows is None} == {mailbox}


def test_counters_and_counts_come_back_and_counts_are_taken(asked: Asked) -> None:
    mailbox, nobody = asked.truth[0]["mailboxid"], uuid.uuid1()
    counters = asked.counters.stored_of(MAILBOX_COUNTERS, [mailbox, nobody])
    assert counters == {mailbox: {Sum.COUNT: 7, Sum.UNSEEN: 2}}
    sums = {Sum.COUNT: 3, Sum.UNSEEN: 2, Sum.SIZE: 1}
    book = ChunkSums({0: Chunk(sums, AT, AT + 1)}, whole=True, whole_at=AT)
    assert asked.tallies.of_mailboxes([mailbox, nobody]) == {mailbox: book}
    asked.tallies.counted({nobody: {0: sums}}, AT)


def test_a_statement_is_known_by_the_same_marks_and_columns(asked: Asked) -> None:
    asked.session.asked.clear()
    asked.tables.truth_rows([asked.truth[0]["messageid"]])
    asked.tables.projection_rows(asked.family.listing, asked.slots)
    asked.lineage.of_slots(asked.slots)
    columns = schema_of(asked.session.session, asked.settings.cassandra.keyspace)
    columns["lineage_by_row"] = LINEAGE_COLUMNS
    known = {}
    for statement, _, _ in asked.session.asked:
        marks = [(each.name, cql_type(each.type)) for each in statement.column_metadata]
        table = statement.column_metadata[0].table_name
        known[table] = marks, statement.routing_key_indexes
        given = {each[2]: cql_type(each[3]) for each in statement.result_metadata}
        assert given == {name: columns[table][name] for name in given}
    assert {table: known[table] for table in MARKS} == MARKS


def cql_type(kind: Any) -> str:
    return str(kind.cql_parameterized_type()).replace("varchar", "text")
