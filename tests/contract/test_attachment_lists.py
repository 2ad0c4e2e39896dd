"""Lists of attachments as Cassandra stores them: cells of a user-defined type, read as JSON."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from cassandra.cluster import Session

from reconcilers.declared.attachments import id_as_uuid
from reconcilers.declared.families.attachment_reference import ATTACHMENT_REFERENCE
from reconcilers.declared.family import bind
from reconcilers.words.errors import MalformedContent
from reconcilers.words.model import KeyValue
from streaming.settings import CassandraSettings
from streaming.tables import Tables, open_session, schema_of
from tests.builders.attachments import PDF, PNG
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
        self.session, self.keyspace = session, settings.keyspace
        family = bind(ATTACHMENT_REFERENCE, schema_of(ours, settings.keyspace))
        self.tables = Tables(ours, settings, family)

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
    settings = CassandraSettings(
        hosts=(stack.cassandra_host,), port=stack.cassandra_port, keyspace=mail_keyspace
    )
    ours = open_session(settings)
    yield Lists(cassandra, ours, settings)
    ours.cluster.shutdown()


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


def test_a_list_that_james_could_not_load_is_malformed(lists: Lists) -> None:
    message = uuid.uuid1()
    lists.write("messagev3", message, "[{name: 'a.pdf'}]")
    with pytest.raises(MalformedContent, match=f"messagev3: attachments of {message}"):
        lists.tables.truth_serially([message])
