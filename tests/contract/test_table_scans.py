"""Whole tables as a sweep scans them: every partition or row once, at the token that Cassandra has.

A piece ends by tokens that are computed here: one that is wrong would leave rows out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import RawReads
from reconcilers.declared.families.mailbox import MAILBOX
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.families.rights import RIGHTS
from reconcilers.declared.family import Family, bind
from reconcilers.declared.raw import RawRow
from reconcilers.declared.scan import scans_of, wakes_of
from reconcilers.words.model import Wake
from reconcilers.words.tokens import TokenRange
from streaming.settings import CassandraSettings
from streaming.tables import UndecodedScans, levels_of, open_session, schema_of
from streaming.tables.rate_limit import RateLimiter
from tests.endpoints import Endpoints

pytestmark = pytest.mark.stack
FAMILIES = (MESSAGE, RIGHTS, MAILBOX)


@pytest.fixture
def settings(stack: Endpoints, mail_keyspace: str) -> CassandraSettings:
    host, port = stack.cassandra_host, stack.cassandra_port
    return CassandraSettings(hosts=(host,), port=port, keyspace=mail_keyspace)


@pytest.fixture
def ours(settings: CassandraSettings) -> Iterator[Session]:
    made = open_session(settings)
    yield made
    made.cluster.shutdown()


@pytest.fixture
def planted(cassandra: Session, mail_keyspace: str) -> uuid.UUID:
    """A mailbox with a list of two events and a right, and two paths of one user."""
    box = uuid.uuid1()
    for number in range(2):
        cassandra.execute(
            f"INSERT INTO {mail_keyspace}.eventstore (aggregateid, eventid, event)"
            " VALUES (%s, %s, '{}')",
            (str(box), number),
        )
        cassandra.execute(
            f"INSERT INTO {mail_keyspace}.mailboxpathv3 (namespace, user, mailboxname, mailboxid)"
            " VALUES ('#private', %s, %s, %s)",
            (f"user {box}", f"box {number}", box),
        )
    cassandra.execute(
        f"INSERT INTO {mail_keyspace}.usermailboxacl (username, mailboxid, rights)"
        " VALUES (%s, %s, 'lr')",
        (f"user {box}", box),
    )
    return box


@pytest.mark.parametrize("of", FAMILIES, ids=lambda each: each.name)
def test_each_row_has_the_token_that_cassandra_gives_it(
    ours: Session, settings: CassandraSettings, planted: uuid.UUID, of: Family
) -> None:
    family = bind(of, schema_of(ours, settings.keyspace))
    scans = scans_made(ours, settings, family)
    for scan in scans_of(family):
        rows = read(scans, scan.table)
        computed = sorted({scans.token(scan.partition_of(row)) for row in rows})
        assert computed == sorted(tokens_of(ours, settings, scan.table, scan.partition))


def test_a_partition_is_read_once_and_a_row_by_its_key(
    ours: Session, settings: CassandraSettings, planted: uuid.UUID
) -> None:
    user = f"user {planted}"
    family = bind(RIGHTS, schema_of(ours, settings.keyspace))
    wakes, scans = wakes_of(family), scans_made(ours, settings, family)

    def woken(table: str) -> list[Wake]:
        found = (wakes[table](row) for row in read(scans, table))
        return [each for each in found if each is not None and planted in (*each.key, each.source)]

    assert woken("eventstore") == [Wake((None, planted), planted, changes=0)]
    assert woken("usermailboxacl") == [Wake((user, planted), None, changes=0)]


def scans_made(ours: Session, settings: CassandraSettings, family: Family) -> UndecodedScans:
    reads = RawReads(ours, levels_of(settings).each)
    return UndecodedScans(reads, settings.keyspace, scans_of(family), RateLimiter(100_000))


def read(scans: UndecodedScans, table: str) -> list[RawRow]:
    """All rows, by ranges that follow each other, in small pages."""
    return [
        row
        for tokens in TokenRange().halves()
        for page in scans.pages(table, tokens, 3)
        for row in page
    ]


def tokens_of(
    ours: Session, settings: CassandraSettings, table: str, partition: tuple[str, ...]
) -> set[int]:
    """The tokens of a table's partitions, as Cassandra computes them."""
    columns = ", ".join(partition)
    query = f"SELECT DISTINCT {columns}, token({columns}) AS t FROM {settings.keyspace}.{table}"
    return {row["t"] for row in ours.execute(query)}
