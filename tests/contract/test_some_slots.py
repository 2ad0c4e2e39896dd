"""Some slots of a mailbox, from a UID on or the last ones: in memory and in Cassandra alike."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import bind
from reconcilers.words.model import Row, Slot
from streaming.settings import CassandraSettings
from streaming.steps.ports import GroupTables
from streaming.tables import Tables, open_session, schema_of
from tests.endpoints import Endpoints
from tests.fakes.memory_tables import MemoryTables

LISTING = MESSAGE.listing
MAILBOX, OTHER = uuid.uuid1(), uuid.uuid1()
UIDS = (3, 7, 8, 1_000, 4_000)
MESSAGES = {uid: uuid.uuid1() for uid in UIDS}


@pytest.fixture
def tables(kind: str, request: pytest.FixtureRequest) -> Iterator[GroupTables]:
    if kind == "memory":
        rows = {Slot(MAILBOX, uid): Row({"uid": uid, "messageid": MESSAGES[uid]}) for uid in UIDS}
        rows[Slot(OTHER, 5_000)] = Row({"uid": 5_000, "messageid": uuid.uuid1()})
        yield MemoryTables(rows={LISTING.name: rows})
        return
    session: Any = request.getfixturevalue("cassandra")
    keyspace = request.getfixturevalue("mail_keyspace")
    insert = (
        f"INSERT INTO {keyspace}.messageidtable (mailboxid, uid, messageid) VALUES (%s, %s, %s)"
    )
    for uid in UIDS:
        session.execute(insert, (MAILBOX, uid, MESSAGES[uid]))
    session.execute(insert, (OTHER, 5_000, uuid.uuid1()))
    stack: Endpoints = request.getfixturevalue("stack")
    settings = CassandraSettings(
        hosts=(stack.cassandra_host,), port=stack.cassandra_port, keyspace=keyspace
    )
    ours = open_session(settings)
    yield Tables(ours, settings, bind(MESSAGE, schema_of(ours, keyspace)))
    ours.cluster.shutdown()


@pytest.mark.parametrize(
    ("first", "most", "uids"),
    [
        (3, 2, [3, 7]),
        (4, 2, [7, 8]),
        (1_001, 5, [4_000]),
        (4_001, 5, []),
        (None, 2, [1_000, 4_000]),
        (None, 9, list(UIDS)),
    ],
)
def test_so_many_from_there_on_or_the_last_with_the_message_that_each_names(
    tables: GroupTables, first: int | None, most: int, uids: list[int]
) -> None:
    found = dict(tables.some_slots(LISTING, MAILBOX, most, first))
    assert found == {Slot(MAILBOX, uid): MESSAGES[uid] for uid in uids}
