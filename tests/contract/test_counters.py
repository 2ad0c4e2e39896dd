"""Counters and what they sum up, on the real Cassandra with James's tables."""

import dataclasses
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from deploy.mailserver import james
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA, QUOTA_CURRENT_VALUE
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Listed, QuotaRoot, Sum, Sums, Tally
from reconcilers.declared.writes import AddToCounter
from reconcilers.words.errors import NotGuarded, Refused
from reconcilers.words.model import Slot
from streaming.settings import CassandraSettings
from streaming.tables import CounterTables
from streaming.tables.counters import PAGE
from tests.builders.newer_james import add_newer_quotas
from tests.endpoints import Endpoints

pytestmark = pytest.mark.stack

TALLIES = (MAILBOX_COUNTERS, CURRENT_QUOTA, QUOTA_CURRENT_VALUE)
UNLIMITED = 10_000_000


@pytest.fixture(scope="module")
def keyspace(cassandra: Session) -> Iterator[str]:
    """James's tables, and the newer shape of a quota beside the older."""
    name = f"counters_{uuid.uuid4().hex[:8]}"
    james.create_schema(cassandra, name)
    add_newer_quotas(cassandra, name)
    yield name
    cassandra.execute(f"DROP KEYSPACE IF EXISTS {name}")


@pytest.fixture(scope="module")
def settings(stack: Endpoints, keyspace: str) -> CassandraSettings:
    return CassandraSettings(
        hosts=(stack.cassandra_host,), port=stack.cassandra_port, keyspace=keyspace
    )


@pytest.fixture(scope="module")
def tables(session: Session, settings: CassandraSettings) -> CounterTables:
    return CounterTables(session, settings, MESSAGE, UNLIMITED)


def key_of(tally: Tally) -> UUID | str:
    """A row that no other test uses."""
    user = f"{uuid.uuid4().hex}@example.org"
    return f"#private&{user}" if tally.per_quota_root else uuid.uuid1()


def adding(tally: Tally, key: UUID | str, deltas: Sums) -> AddToCounter:
    return AddToCounter(tally, Slot(uuid.uuid1(), 0), key, round=1, deltas=deltas)


def of(tally: Tally, first: int, second: int) -> Sums:
    """A value for each of its two counters."""
    return dict(zip(tally.cells, (first, second), strict=True))


each_tally = pytest.mark.parametrize("tally", TALLIES, ids=lambda tally: tally.table)


# --- counters ------------------------------------------------------------------------------------


@each_tally
def test_what_is_added_is_stored(tables: CounterTables, tally: Tally) -> None:
    """To a row that is missing, to one that is there; in both directions, and below zero."""
    key, other = key_of(tally), key_of(tally)
    tables.add(adding(tally, key, of(tally, 7, 2**40)))
    assert tables.stored(tally, key) == of(tally, 7, 2**40)
    tables.add(adding(tally, key, of(tally, -3, 5)))
    assert tables.stored(tally, key) == of(tally, 4, 2**40 + 5)
    tables.add(adding(tally, key, of(tally, -10, -(2**40) - 5)))
    assert tables.stored(tally, key) == of(tally, -6, 0)
    assert tables.stored(tally, other) is None


@each_tally
def test_what_has_no_delta_is_left_alone_and_a_null_counter_is_0(
    tables: CounterTables, tally: Tally
) -> None:
    one, other = tally.cells
    key = key_of(tally)
    tables.add(adding(tally, key, {one: 3}))
    assert tables.stored(tally, key) == of(tally, 3, 0)
    tables.add(adding(tally, key, {one: 0, other: -2}))
    assert tables.stored(tally, key) == of(tally, 3, -2)


@each_tally
def test_a_row_of_zeros_is_a_row(tables: CounterTables, tally: Tally) -> None:
    key = key_of(tally)
    tables.add(adding(tally, key, of(tally, 4, 6)))
    tables.add(adding(tally, key, of(tally, -4, -6)))
    assert tables.stored(tally, key) == of(tally, 0, 0)


@each_tally
def test_many_rows_are_read_together(tables: CounterTables, tally: Tally) -> None:
    there, absent = [key_of(tally) for _ in range(150)], key_of(tally)
    for number, key in enumerate(there):
        tables.add(adding(tally, key, of(tally, number + 1, 7)))
    found = tables.stored_of(tally, [*there, absent])
    assert found == {key: of(tally, number + 1, 7) for number, key in enumerate(there)}


class Sent:
    """A session that takes down what is sent through it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.statements: list[Any] = []

    def execute(self, statement: Any, *values: Any) -> Any:
        self.statements.append(statement)
        return self._session.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


@each_tally
def test_both_cells_are_sent_as_one_and_never_again_by_the_driver(
    session: Session, settings: CassandraSettings, tally: Tally
) -> None:
    sent, key = Sent(session), key_of(tally)
    tables = CounterTables(sent, settings, MESSAGE, UNLIMITED)
    tables.add(adding(tally, key, of(tally, 1, 1)))
    (batch,) = sent.statements
    assert not batch.is_idempotent
    assert type(batch.retry_policy).__name__ == "FallthroughRetryPolicy"
    assert tables.stored(tally, key) == of(tally, 1, 1)


@each_tally
def test_a_delta_of_nothing_is_refused(tables: CounterTables, tally: Tally) -> None:
    key = key_of(tally)
    with pytest.raises(NotGuarded):
        tables.add(adding(tally, key, of(tally, 0, 0)))
    assert tables.stored(tally, key) is None


def test_one_mailbox_counters_statement_leaves_a_null_cell(
    tables: CounterTables, cassandra: Session, keyspace: str, mailbox: UUID
) -> None:
    """As James writes where only one of the two changes."""
    cassandra.execute(
        f"UPDATE {keyspace}.mailboxcounters SET unseen = unseen + 2 WHERE mailboxid = %s",
        (mailbox,),
    )
    assert tables.stored(MAILBOX_COUNTERS, mailbox) == {Sum.COUNT: 0, Sum.UNSEEN: 2}


# --- quotas as James names them -------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class WrittenByJames:
    """The rows of one user's quota, written and read under James's own names.

    They are literals here: `QuotaComponent.MAILBOX` is "MAILBOX", `QuotaType.COUNT` and `SIZE` are
    "count" and "size". `CassandraCurrentQuotaManagerV1` names the row by `QuotaRoot.getValue()`,
    `CassandraCurrentQuotaManagerV2` by `QuotaRoot.asString()`, which adds the domain again.
    """

    session: Session
    keyspace: str

    def older(self, quotaroot: str, messages: int, octets: int) -> None:
        self.session.execute(
            f"UPDATE {self.keyspace}.currentquota SET messagecount = messagecount + %s,"
            " storage = storage + %s WHERE quotaroot = %s",
            (messages, octets, quotaroot),
        )

    def newer(self, identifier: str, component: str, quotatype: str, value: int) -> None:
        self.session.execute(
            f"UPDATE {self.keyspace}.quotacurrentvalue SET currentvalue = currentvalue + %s"
            " WHERE identifier = %s AND quotacomponent = %s AND quotatype = %s",
            (value, identifier, component, quotatype),
        )

    def newer_rows(self, *identifiers: str) -> set[tuple[str, str, int]]:
        """Of these users together: component, type, value."""
        query = (
            f"SELECT quotacomponent, quotatype, currentvalue FROM {self.keyspace}.quotacurrentvalue"
            " WHERE identifier = %s"
        )
        return {tuple(row) for each in identifiers for row in self.session.execute(query, (each,))}


@pytest.fixture(scope="module")
def by_james(cassandra: Session, keyspace: str) -> WrittenByJames:
    return WrittenByJames(cassandra, keyspace)


@pytest.mark.parametrize("domain", ["", "@example.org"], ids=["no domain", "a domain"])
def test_the_newer_quota_is_read_and_corrected_under_james_names(
    tables: CounterTables, by_james: WrittenByJames, domain: str
) -> None:
    """Sieve's and JMAP's quotas of the same table stay as they are."""
    user = f"ana-{uuid.uuid4().hex}"
    root, identifier = f"#private&{user}{domain}", f"#private&{user}{domain}{domain}"
    by_james.newer(identifier, "MAILBOX", "count", 9)
    by_james.newer(identifier, "MAILBOX", "size", 900)
    by_james.newer(identifier, "SIEVE", "size", 9)
    by_james.newer(f"{user}{domain}", "JMAP_UPLOADS", "size", 9)
    assert tables.stored(QUOTA_CURRENT_VALUE, root) == {Sum.COUNT: 9, Sum.SIZE: 900}
    tables.add(adding(QUOTA_CURRENT_VALUE, root, {Sum.COUNT: -2, Sum.SIZE: 50}))
    assert tables.stored(QUOTA_CURRENT_VALUE, root) == {Sum.COUNT: 7, Sum.SIZE: 950}
    others = {f"{user}{domain}", root} - {identifier}
    assert by_james.newer_rows(identifier, *others) == {
        ("MAILBOX", "count", 7),
        ("MAILBOX", "size", 950),
        ("SIEVE", "size", 9),
        ("JMAP_UPLOADS", "size", 9),
    }


def test_the_older_quota_has_the_domain_once(
    tables: CounterTables, by_james: WrittenByJames
) -> None:
    root = f"#private&ana-{uuid.uuid4().hex}@example.org"
    by_james.older(root, 4, 400)
    assert tables.stored(CURRENT_QUOTA, root) == {Sum.COUNT: 4, Sum.SIZE: 400}


def test_names_that_james_does_not_write_are_no_quota_of_mail(
    tables: CounterTables, by_james: WrittenByJames
) -> None:
    root = f"#private&ana-{uuid.uuid4().hex}@example.org"
    by_james.newer(f"{root}@example.org", "MAILBOX", "COUNT", 9)
    by_james.newer(root, "MAILBOX", "count", 9)
    assert tables.stored(QUOTA_CURRENT_VALUE, root) is None


# --- corrections ----------------------------------------------------------------------------------


def test_a_correction_and_users_increments_add_up(
    tables: CounterTables, cassandra: Session, keyspace: str, mailbox: UUID
) -> None:
    increment = cassandra.prepare(
        f"UPDATE {keyspace}.mailboxcounters SET count = count + 1, unseen = unseen + 1"
        " WHERE mailboxid = ?"
    )

    def user(_number: int) -> None:
        for _ in range(25):
            cassandra.execute(increment, (mailbox,))

    with ThreadPoolExecutor(4) as users:
        running = [users.submit(user, number) for number in range(4)]
        for _ in range(10):
            tables.add(adding(MAILBOX_COUNTERS, mailbox, of(MAILBOX_COUNTERS, -5, 3)))
        for each in running:
            each.result(60)
    assert tables.stored(MAILBOX_COUNTERS, mailbox) == of(MAILBOX_COUNTERS, 50, 130)


def test_a_row_that_was_deleted_and_incremented_again_is_corrected_from_what_it_says(
    tables: CounterTables, cassandra: Session, keyspace: str, mailbox: UUID
) -> None:
    """Its old value may have come back: no matter, what it says is what a delta is added to."""
    tables.add(adding(MAILBOX_COUNTERS, mailbox, of(MAILBOX_COUNTERS, 40, 20)))
    cassandra.execute(f"DELETE FROM {keyspace}.mailboxcounters WHERE mailboxid = %s", (mailbox,))
    assert tables.stored(MAILBOX_COUNTERS, mailbox) is None
    cassandra.execute(
        f"UPDATE {keyspace}.mailboxcounters SET count = count + 1, unseen = unseen + 1"
        " WHERE mailboxid = %s",
        (mailbox,),
    )
    stored = tables.stored(MAILBOX_COUNTERS, mailbox)
    assert stored is not None
    assert stored == tables.stored(MAILBOX_COUNTERS, mailbox)
    wanted = of(MAILBOX_COUNTERS, 5, 2)
    deltas = {each: wanted[each] - stored[each] for each in wanted}
    tables.add(adding(MAILBOX_COUNTERS, mailbox, deltas))
    assert tables.stored(MAILBOX_COUNTERS, mailbox) == wanted


def test_a_table_that_is_not_there_refuses(tables: CounterTables) -> None:
    gone = dataclasses.replace(MAILBOX_COUNTERS, table="nosuchtable")
    with pytest.raises(Refused):
        tables.stored(gone, uuid.uuid1())
    with pytest.raises(Refused):
        tables.add(adding(gone, uuid.uuid1(), of(gone, 1, 1)))


# --- what they sum up ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mail:
    """Rows of `messageIdTable`, by plain CQL."""

    session: Session
    keyspace: str

    def write(self, mailbox: UUID, uid: int, **cells: object) -> None:
        sets = ", ".join(f"{name} = %s" for name in cells)
        self.session.execute(
            f"UPDATE {self.keyspace}.messageidtable SET {sets} WHERE mailboxid = %s AND uid = %s",
            (*cells.values(), mailbox, uid),
        )

    def fill(self, mailbox: UUID, uids: range) -> dict[int, Listed]:
        """Messages of one octet more than their UID, every third seen; what is to be listed."""
        listed = {uid: Listed(uid, uuid.uuid1(), uid % 3 == 0, uid + 1) for uid in uids}
        insert = self.session.prepare(
            f"UPDATE {self.keyspace}.messageidtable SET messageid = ?, flagseen = ?,"
            " fullcontentoctets = ? WHERE mailboxid = ? AND uid = ?"
        )
        values = [
            (each.messageid, each.seen, each.size, mailbox, uid) for uid, each in listed.items()
        ]
        execute_concurrent_with_args(self.session, insert, values, concurrency=64)
        return listed


@pytest.fixture(scope="module")
def mail(cassandra: Session, keyspace: str) -> Mail:
    return Mail(cassandra, keyspace)


def test_an_empty_mailbox_lists_nothing(tables: CounterTables, mailbox: UUID) -> None:
    assert list(tables.listed(mailbox)) == []


def test_rows_that_name_no_message_are_not_listed(
    tables: CounterTables, mail: Mail, mailbox: UUID
) -> None:
    """A late flag update after a delete leaves such a row; James treats it as absent."""
    message = uuid.uuid1()
    mail.write(mailbox, 1, flagseen=True, modseq=3)
    mail.write(mailbox, 2, messageid=message, flagseen=True, fullcontentoctets=70)
    mail.write(mailbox, 3, fullcontentoctets=12)
    assert list(tables.listed(mailbox)) == [Listed(2, message, seen=True, size=70)]


def test_cells_that_are_null_count_as_unseen_and_without_octets(
    tables: CounterTables, mail: Mail, mailbox: UUID
) -> None:
    message = uuid.uuid1()
    mail.write(mailbox, 2**32 - 1, messageid=message)
    assert list(tables.listed(mailbox)) == [Listed(2**32 - 1, message, seen=False, size=0)]


def test_a_range_of_uids_is_listed_from_its_first_to_its_last(
    tables: CounterTables, mail: Mail, mailbox: UUID
) -> None:
    listed = mail.fill(mailbox, range(1, 31))
    for first, last in ((0, 9), (10, 19), (20, 29), (30, 39), (7, 7), (1, 30), (31, 99)):
        wanted = [each for uid, each in listed.items() if first <= uid <= last]
        assert list(tables.listed(mailbox, first, last)) == wanted
    assert list(tables.listed(mailbox)) == list(listed.values())


def test_a_mailbox_of_several_pages_is_listed_whole_and_in_order(
    tables: CounterTables, mail: Mail, mailbox: UUID
) -> None:
    listed = mail.fill(mailbox, range(1, 2 * PAGE + 501))
    mail.fill(uuid.uuid1(), range(1, 20))
    for half_gone in range(900, 1100):
        mail.session.execute(
            f"DELETE messageid FROM {mail.keyspace}.messageidtable"
            " WHERE mailboxid = %s AND uid = %s",
            (mailbox, half_gone),
        )
        del listed[half_gone]
    assert list(tables.listed(mailbox)) == list(listed.values())
    first, last = 100, 2 * PAGE + 100
    wanted = [each for uid, each in listed.items() if first <= uid <= last]
    assert list(tables.listed(mailbox, first, last)) == wanted


def test_a_range_of_many_mailboxes_is_listed_up_to_a_limit_of_rows(
    tables: CounterTables, mail: Mail, mailbox: UUID
) -> None:
    """A row that names no message is a row: else a mailbox would seem to be listed whole."""
    large, headless, empty = (uuid.uuid1() for _ in range(3))
    listed = mail.fill(mailbox, range(1, 31))
    mail.fill(large, range(10, 20))
    mail.fill(headless, range(10, 18))
    mail.write(headless, 18, flagseen=True)
    some = [large, mailbox, headless, empty]
    assert tables.listed_in(some, (10, 17), 8) == {
        large: list(tables.listed(large, 10, 17)),
        mailbox: [listed[uid] for uid in range(10, 18)],
        headless: list(tables.listed(headless)),
        empty: [],
    }
    over = dict.fromkeys([large, mailbox, headless])
    assert tables.listed_in(some, (10, 18), 8) == {**over, empty: []}


def test_the_limit_is_that_of_a_mailbox_also_where_an_answer_has_pages(
    tables: CounterTables, mail: Mail
) -> None:
    first, over, last = (uuid.uuid1() for _ in range(3))
    listed = mail.fill(first, range(1, PAGE + 101))
    mail.fill(over, range(1, PAGE + 102))
    mail.fill(last, range(1, 5))
    found = tables.listed_in([first, over, last], (0, 2**63 - 1), PAGE + 100)
    whole = {first: list(listed.values()), last: list(tables.listed(last))}
    assert found == {over: None, **whole}


# --- whose it is ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Directory:
    """Mailboxes and their paths, by plain CQL."""

    session: Session
    keyspace: str

    def mailbox(self, mailbox: UUID, root: QuotaRoot) -> None:
        self.session.execute(
            f"INSERT INTO {self.keyspace}.mailbox (id, mailboxbase, name, uidvalidity) VALUES"
            f" (%s, {{namespace: '{root.namespace}', user: '{root.user}'}}, 'INBOX', 1)",
            (mailbox,),
        )

    def path(self, root: QuotaRoot, name: str, mailbox: UUID) -> None:
        self.session.execute(
            f"INSERT INTO {self.keyspace}.mailboxpathv3"
            " (namespace, user, mailboxname, mailboxid, uidvalidity) VALUES (%s, %s, %s, %s, 1)",
            (root.namespace, root.user, name, mailbox),
        )


@pytest.fixture(scope="module")
def directory(cassandra: Session, keyspace: str) -> Directory:
    return Directory(cassandra, keyspace)


@pytest.fixture
def root() -> QuotaRoot:
    return QuotaRoot("#private", f"user-{uuid.uuid4().hex}@example.org")


def test_the_owner_of_a_mailbox(
    tables: CounterTables, directory: Directory, root: QuotaRoot, mailbox: UUID
) -> None:
    assert tables.owner(mailbox) is None
    directory.mailbox(mailbox, root)
    assert tables.owner(mailbox) == root
    assert str(tables.owner(mailbox)) == f"#private&{root.user}"
    unknown, attachment = uuid.uuid1(), uuid.uuid4()
    assert tables.owners_of([unknown, attachment, mailbox]) == {mailbox: root}


def test_a_mailbox_of_which_only_a_part_is_there_has_no_owner(
    tables: CounterTables, directory: Directory, mailbox: UUID
) -> None:
    directory.session.execute(
        f"UPDATE {directory.keyspace}.mailbox SET name = 'renamed' WHERE id = %s", (mailbox,)
    )
    assert tables.owner(mailbox) is None


def test_the_mailboxes_of_a_user(
    tables: CounterTables, directory: Directory, root: QuotaRoot
) -> None:
    inbox, sent, theirs, shared = (uuid.uuid1() for _ in range(4))
    assert tables.mailboxes(root) == frozenset()
    directory.path(root, "INBOX", inbox)
    directory.path(root, "Sent", sent)
    directory.path(dataclasses.replace(root, user=f"{root.user}.au"), "INBOX", theirs)
    directory.path(dataclasses.replace(root, namespace="#shared"), "INBOX", shared)
    assert tables.mailboxes(root) == {inbox, sent}
    nobody = dataclasses.replace(root, user="nobody")
    assert dict(tables.mailboxes_of([nobody, root])) == {nobody: set(), root: {inbox, sent}}


def test_a_user_with_more_mailboxes_than_a_page(
    tables: CounterTables, directory: Directory, root: QuotaRoot
) -> None:
    paths = {f"folder.{number}": uuid.uuid1() for number in range(PAGE + 100)}
    insert = directory.session.prepare(
        f"INSERT INTO {directory.keyspace}.mailboxpathv3"
        " (namespace, user, mailboxname, mailboxid) VALUES (?, ?, ?, ?)"
    )
    values = [(root.namespace, root.user, name, mailbox) for name, mailbox in paths.items()]
    execute_concurrent_with_args(directory.session, insert, values, concurrency=64)
    assert tables.mailboxes(root) == set(paths.values())
