"""Lists of attachments as Cassandra stores them: cells of a user-defined type, read as JSON."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from cassandra.cluster import Session

from reconcilers.declared.attachments import id_as_uuid
from reconcilers.declared.families.attachment import ATTACHMENT
from reconcilers.declared.families.attachment_reference import ATTACHMENT_REFERENCE
from reconcilers.declared.family import bind
from reconcilers.declared.writes import DeleteRow, SetCells
from reconcilers.rows.table_use import NEWEST
from reconcilers.words.errors import MalformedContent
from reconcilers.words.model import KeyValue
from streaming.settings import CassandraSettings
from streaming.tables import ContentTables, Tables, open_session, schema_of, use_of
from tests.builders.attachments import MESSAGE, PDF, PNG, place, reference, reference_place
from tests.endpoints import Endpoints

pytestmark = pytest.mark.stack
AT = 1_700_000_000_000_000
# as James writes it: one statement, and the list is prepended
UPDATE = (
    "UPDATE {}.{} USING TIMESTAMP {} SET fullcontentoctets = 100, headercontent = 'h',"
    " attachments = {} + attachments WHERE messageid = {}"
)


class Lists:
    """Writes lists, and reads them back as truth rows."""

    def __init__(self, session: Session, ours: Session, settings: CassandraSettings) -> None:
        self.session, self.ours, self.settings = session, ours, settings
        self.keyspace = settings.keyspace
        self.family = bind(ATTACHMENT_REFERENCE, schema_of(ours, settings.keyspace))
        self.tables = Tables(ours, settings, self.family)

    def write(self, table: str, message: KeyValue, listed: str, at: int = AT) -> None:
        self.session.execute(UPDATE.format(self.keyspace, table, at, listed, message))

    def read_in_every_way(self, *messages: KeyValue) -> list[dict[KeyValue, Any]]:
        tables = self.tables
        ways = tables.truth_rows, tables.truth_with_times, tables.truth_serially
        return [
            {message: tuple(row.get("id") for row in rows) for message, rows in found.items()}
            for found in (read(messages) for read in ways)
        ]


@pytest.fixture
def lists(cassandra: Session, mail_keyspace: str, stack: Endpoints) -> Iterator[Lists]:
    ours, settings = _opened(stack, mail_keyspace)
    yield Lists(cassandra, ours, settings)
    ours.cluster.shutdown()


def _opened(stack: Endpoints, keyspace: str) -> tuple[Session, CassandraSettings]:
    settings = CassandraSettings(
        hosts=(stack.cassandra_host,), port=stack.cassandra_port, keyspace=keyspace
    )
    return open_session(settings), settings


def test_a_list_is_read_with_the_write_time_of_its_statement(lists: Lists) -> None:
    message, plain, absent = uuid.uuid1(), uuid.uuid1(), uuid.uuid1()
    named = f"{{id: '{PDF}', name: 'a \"b\".pdf', cid: 'c', isinline: true}}"
    lists.write("messagev3", message, f"[{named}, {{id: '{PNG}'}}]")
    lists.write("messagev3", message, f"[{named}]", AT + 1)  # sent again: it is prepended
    lists.write("messagev3", plain, "[]")
    found = lists.read_in_every_way(message, plain, absent)
    assert found == [{message: (PDF, PNG)}] * 3
    untimed = lists.tables.truth_rows([message])[message]
    assert [row.written for row in untimed] == [{}, {}]
    for read in lists.tables.truth_with_times, lists.tables.truth_serially:
        rows = read([message])[message]
        assert [set(row.written.values()) for row in rows] == [{AT + 1}] * 2
        assert [row.get("attachmentidasuuid") for row in rows] == [id_as_uuid(PDF), id_as_uuid(PNG)]


def test_a_message_of_an_older_james_is_read_where_that_stored_it(lists: Lists) -> None:
    moved, old, new = uuid.uuid1(), uuid.uuid1(), uuid.uuid1()
    lists.write("messagev2", moved, "[{id: 'abc'}]")
    lists.write("messagev3", moved, "[{id: 'def'}]")
    lists.write("messagev2", old, "[{id: 'abc'}]")
    lists.write("messagev3", new, "[{id: 'def'}]")
    found = lists.read_in_every_way(moved, old, new)
    assert found == [{moved: ("def",), old: ("abc",), new: ("def",)}] * 3


def test_a_reference_is_written_and_removed_as_it_was_seen(lists: Lists) -> None:
    message = uuid.uuid1()
    lists.write("messagev3", message, f"[{{id: '{PDF}'}}]")
    (truth,) = lists.tables.truth_serially([message])[message]
    listing, slot = lists.family.listing, reference_place(PDF, message)
    assert lists.family.truth.slot_of(truth) == slot
    lists.tables.apply([SetCells(listing, slot, AT, {"attachmentid": PDF})])
    assert lists.tables.projection_with_times(listing, [slot]) == {
        slot: reference(PDF, message, at=AT)
    }
    (named,) = (
        source
        for place, source in lists.tables.slots_of_group(listing, slot.group)
        if place == slot
    )
    assert named == message
    lists.tables.apply([DeleteRow(listing, slot, AT - 1)])
    assert slot in lists.tables.projection_rows(listing, [slot])
    lists.tables.apply([DeleteRow(listing, slot, AT)])
    assert lists.tables.projection_rows(listing, [slot]) == {}


def test_the_row_of_an_attachment_is_read_with_what_it_keeps(lists: Lists) -> None:
    message, name = uuid.uuid1(), uuid.uuid4().hex
    rows = bind(ATTACHMENT, schema_of(lists.ours, lists.keyspace))
    tables, slot = Tables(lists.ours, lists.settings, rows), place(name)
    insert = (
        f"INSERT INTO {lists.keyspace}.attachmentv2 (idasuuid, id, blobid) VALUES"
        f" ({slot.group}, '{name}', 'blob') USING TIMESTAMP {AT}"
    )
    lists.session.execute(insert)
    found = tables.projection_with_times(rows.listing, [slot])[slot]
    assert (dict(found.cells), dict(found.written)) == (
        {"idasuuid": slot.group, "id": name, "blobid": "blob", "message_id": None},
        {"id": AT, "blobid": AT},
    )
    tables.apply([SetCells(rows.listing, slot, AT + 1, {"message_id": message})])
    assert tables.projection_rows(rows.listing, [slot])[slot].get("message_id") == message


def test_a_message_exists_while_it_has_content_or_a_place(lists: Lists) -> None:
    places, old, new, gone = (uuid.uuid1() for _ in range(4))
    keyspace, mailbox = lists.keyspace, uuid.uuid1()
    lists.session.execute(
        f"INSERT INTO {keyspace}.imapuidtable (messageid, mailboxid, uid, modseq)"
        f" VALUES ({places}, {mailbox}, 1, 1) IF NOT EXISTS"
    )
    lists.write("messagev2", old, "[]")
    lists.write("messagev3", new, "[]")
    contents = ContentTables(lists.ours, lists.settings, lists.family.truth)
    assert contents.having_content([places, old, new, gone]) == {places, old, new}
    assert contents.having_owner([places, old, new, gone]) == {places}


def test_an_upload_belongs_to_its_user(lists: Lists) -> None:
    upload, other = uuid.uuid4(), uuid.uuid4()
    lists.session.execute(
        f"INSERT INTO {lists.keyspace}.attachmentowners (id, owner) VALUES ({upload}, 'ana')"
    )
    family = bind(ATTACHMENT, schema_of(lists.ours, lists.keyspace))
    contents = ContentTables(lists.ours, lists.settings, family.truth)
    assert contents.having_user([upload, other]) == {upload}


def test_a_table_without_the_newest_references_is_not_used(
    cassandra: Session, fresh_keyspace: str, stack: Endpoints
) -> None:
    lists = Lists(cassandra, *_opened(stack, fresh_keyspace))
    listing = lists.family.listing

    def why() -> str | None:
        return use_of(lists.ours, lists.settings, lists.family).why_unused

    assert why() is None  # no message has an attachment
    family = bind(ATTACHMENT, schema_of(lists.ours, lists.keyspace))
    contents = ContentTables(lists.ours, lists.settings, family.truth)
    assert contents.having_user([MESSAGE]) == {MESSAGE}  # no user owns anything
    messages = [uuid.uuid1() for _ in range(NEWEST + 1)]
    for number, message in enumerate(messages):
        lists.write("messagev3", message, f"[{{id: 'a{number}'}}]", AT + number)
    lists.write("messagev3", uuid.uuid1(), "[{name: 'malformed'}]", AT + 100)
    slots = [reference_place(f"a{number}", each) for number, each in enumerate(messages)]
    lists.tables.apply([SetCells(listing, slots[0], AT, {"attachmentid": "a0"})])
    assert why() == (
        "attachmentmessageid has none of the 5 newest rows: this James does not use it"
    )
    lists.tables.apply([SetCells(listing, slots[1], AT, {"attachmentid": "a1"})])
    assert why() is None
    lists.ours.cluster.shutdown()


def test_a_list_that_james_could_not_load_is_malformed(lists: Lists) -> None:
    message = uuid.uuid1()
    lists.write("messagev3", message, "[{name: 'a.pdf'}]")
    with pytest.raises(MalformedContent, match=f"messagev3: attachments of {message}"):
        lists.tables.truth_serially([message])
