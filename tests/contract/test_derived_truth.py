"""Rights as Cassandra stores them: rows derived from events and from JSON, and sets of letters."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from cassandra.cluster import Session

from reconcilers.declared.access_rights import EVENTS, JSON_LISTS, LIST_ROWS
from reconcilers.declared.family import bind
from reconcilers.declared.truth import TruthTable
from reconcilers.words.errors import MalformedContent
from reconcilers.words.model import KeyValue, Row, Value
from streaming.settings import CassandraSettings
from streaming.tables import Tables, open_session, schema_of
from streaming.tables.rate_limit import RateLimiter
from tests.builders.rights import BOB, EVE, FROM_EVENTS, event
from tests.endpoints import Endpoints

pytestmark = pytest.mark.stack
EVENT_STORE = (
    "CREATE TABLE IF NOT EXISTS {}.eventstore (aggregateid text, eventid int, event text,"
    " snapshot int static, PRIMARY KEY ((aggregateid), eventid))"
)
AT = 1_700_000_000_000_000
Truth = Callable[[TruthTable], Tables]


@pytest.fixture
def truth(cassandra: Session, mail_keyspace: str, stack: Endpoints) -> Iterator[Truth]:
    """The tables of the family whose truth is this table, with a session of their own."""
    cassandra.execute(EVENT_STORE.format(mail_keyspace))
    settings = CassandraSettings(
        hosts=(stack.cassandra_host,), port=stack.cassandra_port, keyspace=mail_keyspace
    )
    ours = open_session(settings)

    def tables(table: TruthTable) -> Tables:
        family = replace(FROM_EVENTS, truth=table, wakes_on=(table.table, "usermailboxacl"))
        return Tables(ours, settings, bind(family, schema_of(ours, mail_keyspace)))

    yield tables
    ours.cluster.shutdown()


def cells(rows: tuple[Row, ...]) -> dict[Value, Value]:
    return {row.get("key"): row.get("rights") for row in rows}


def read_in_every_way(tables: Tables, *sources: KeyValue) -> list[dict[KeyValue, Any]]:
    ways = tables.truth_rows, tables.truth_with_times, tables.truth_serially
    return [read(sources) for read in ways]


def test_events_are_read_by_the_text_of_their_mailbox(
    truth: Truth, cassandra: Session, mail_keyspace: str
) -> None:
    mailbox, empty = uuid.uuid1(), uuid.uuid1()
    insert = (
        f"INSERT INTO {mail_keyspace}.eventstore (aggregateid, eventid, event)"
        " VALUES (%s, %s, %s) USING TIMESTAMP %s"
    )
    history = [event(0, {}, {BOB: "lr"}), event(1, {BOB: "lr"}, {EVE: "wrl"})]
    for number, text in enumerate(history):
        cassandra.execute(insert, (str(mailbox), number, text, AT + number))
    found = read_in_every_way(truth(EVENTS), mailbox, empty)
    assert [list(each) for each in found] == [[mailbox]] * 3
    assert [cells(each[mailbox]) for each in found] == [
        {BOB: frozenset(), EVE: frozenset("lrw")}
    ] * 3
    times = [{at for row in each[mailbox] for at in row.written.values()} for each in found]
    assert times == [set(), {AT + 1}, {AT + 1}]
    cassandra.execute(insert, (str(mailbox), 2, "{", AT))
    with pytest.raises(MalformedContent, match=f"eventstore: event 2 of {mailbox}"):
        truth(EVENTS).truth_serially([mailbox])


def test_a_list_in_one_cell_and_one_in_rows(
    truth: Truth, cassandra: Session, mail_keyspace: str
) -> None:
    mailbox = uuid.uuid1()
    text = json.dumps({"entries": {BOB: "lr", "$staff": "l"}})
    cassandra.execute(
        f"INSERT INTO {mail_keyspace}.acl (id, acl, version) VALUES (%s, %s, 1)", (mailbox, text)
    )
    for name, letters in ((BOB, {"r", "l"}), ("$staff", {"l"})):
        update = f"UPDATE {mail_keyspace}.aclv2 SET rights = rights + %s WHERE id = %s AND key = %s"
        cassandra.execute(update, (letters, mailbox, name))
    for table in JSON_LISTS, LIST_ROWS:
        for found in read_in_every_way(truth(table), mailbox):
            expected = {BOB: frozenset("lr"), "$staff": frozenset("l")}
            assert cells(found[mailbox]) == expected


@pytest.mark.parametrize("table", [JSON_LISTS, LIST_ROWS])
def test_a_list_that_has_events_is_read_in_no_older_table(
    truth: Truth,
    cassandra: Session,
    mail_keyspace: str,
    table: TruthTable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """James writes events of all lists once it has migrated; what it wrote before is a copy."""
    moved, other = uuid.uuid1(), uuid.uuid1()
    for each in (moved, other):
        text = json.dumps({"entries": {BOB: "lr"}})
        cql = f"INSERT INTO {mail_keyspace}.acl (id, acl, version) VALUES (%s, %s, 1)"
        cassandra.execute(cql, (each, text))
        cql = f"UPDATE {mail_keyspace}.aclv2 SET rights = rights + %s WHERE id = %s AND key = %s"
        cassandra.execute(cql, ({"l", "r"}, each, BOB))
    insert = f"INSERT INTO {mail_keyspace}.eventstore (aggregateid, eventid, event) VALUES (%s, 0, "
    cassandra.execute(insert + "%s)", (str(moved), event(0, {BOB: "lr"}, {EVE: "l"})))
    cassandra.execute(insert + "%s)", (str(other), json.dumps({"type": "filtering-rule-set"})))
    tables = truth(table)
    spent = set[int]()
    monkeypatch.setattr(RateLimiter, "spend", lambda pace, _rows: spent.add(id(pace)))
    told = f"eventstore has a newer list of {moved} than {table.table}: set the table"
    for read in tables.truth_rows, tables.truth_with_times, tables.truth_serially:
        with pytest.raises(MalformedContent, match=told):
            read([other, moved])
        assert cells(read([other])[other]) == {BOB: frozenset("lr")}
    assert spent == {id(tables.pace)}, "both tables are read within one budget"
