"""Content as evidence: when it is asked for, what it settles, and where it is not read at all."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, Projection, bind, keeping
from reconcilers.rows.memory import Memory
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import (
    KeyValue,
    Kind,
    Repair,
    Report,
    Row,
    Verdict,
)
from streaming.settings import CassandraSettings
from streaming.steps.contents import Contents
from streaming.tables.contents import ContentTables
from tests.builders.indexes import DELETED
from tests.builders.judging import NEAR
from tests.builders.rights import BOB, FROM_EVENTS, SHARED, place, shown
from tests.builders.rows import (
    DELAY,
    FAMILY,
    MESSAGE_ID,
    OTHER_ID,
    PROJECTION,
    SCHEMA,
    row,
    seen,
    truth,
)
from tests.builders.slots import slots
from tests.fakes.counting_session import Answer, Prepared

CONTENT = {"messageid": "timeuuid"}
BOTH = {"messagev2": CONTENT, "messagev3": CONTENT}
WITH_CONTENT = bind(keeping(MESSAGE, ()), SCHEMA | BOTH)
AMBIGUOUS = Report(Kind.AMBIGUOUS_RANGE_DELETE, "which one its user meant is not known")


# --- which tables --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "read"),
    [
        (BOTH, ("messagev2", "messagev3")),
        ({"messagev3": CONTENT}, ("messagev3",)),
        ({"messagev2": CONTENT}, ("messagev2",)),
        ({}, ()),
        (BOTH | {"messagev4": CONTENT}, ()),
        ({"messagev4": CONTENT}, ()),
        (BOTH | {"messagecounter": CONTENT}, ("messagev2", "messagev3")),
    ],
    ids=["both", "new", "old", "none", "a newer James", "only a newer", "another table"],
)
def test_content_is_read_where_all_its_tables_are_known(
    tables: Mapping[str, dict[str, str]], read: tuple[str, ...]
) -> None:
    assert bind(keeping(MESSAGE, ()), SCHEMA | dict(tables)).truth.contents == read


# --- when it is asked for ------------------------------------------------------------------------


@dataclass
class Asked:
    """The truth and the content, and in which order they were asked for."""

    placed: bool = False
    kept: frozenset[KeyValue] = frozenset()
    fails: Exception | None = None
    order: list[str] = field(default_factory=list)

    def truth_serially(self, sources: Iterable[KeyValue]) -> Mapping[KeyValue, tuple[Row, ...]]:
        self.order.append("truth")
        return {each: (truth(),) for each in sources} if self.placed else {}

    def having_content(self, sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        self.order.append("content")
        if self.fails is not None:
            raise self.fails
        return self.kept & set(sources)

    def having_owner(self, things: Sequence[KeyValue]) -> Collection[KeyValue]:
        raise AssertionError(f"nobody asks for the owner of {things}")

    having_user = having_owner

    def settle(self, one: Seen, verdict: Verdict = AMBIGUOUS) -> Verdict:
        return Contents(WITH_CONTENT, self, self, DELAY).settle(PROJECTION, one, verdict)


EXPUNGED = seen(row(), memory=Memory(range_deletes=NEAR))


@pytest.mark.parametrize(
    ("asked", "order", "becomes"),
    [
        (Asked(), ["truth", "content"], Repair),
        (Asked(placed=True), ["truth"], Report),
        (Asked(kept=frozenset({MESSAGE_ID})), ["truth", "content"], Report),
    ],
    ids=["nowhere", "in another mailbox", "not deleted yet"],
)
def test_the_truth_is_asked_once_more_before_content_is(
    asked: Asked, order: list[str], becomes: type
) -> None:
    answer = asked.settle(EXPUNGED)
    assert isinstance(answer, becomes)
    assert (answer is AMBIGUOUS) is (becomes is Report)
    assert asked.order == order


def test_each_message_that_may_claim_the_row_must_be_gone() -> None:
    two = replace(EXPUNGED, consulted=frozenset({MESSAGE_ID, OTHER_ID}))
    assert Asked(kept=frozenset({OTHER_ID})).settle(two) is AMBIGUOUS
    assert isinstance(Asked().settle(two), Repair)


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (EXPUNGED, Report(Kind.ABSENT_WITHOUT_DELETE, "no delete was heard")),
        (EXPUNGED, Report(Kind.UNRESOLVED, "names no message")),
        (replace(EXPUNGED, consulted=frozenset()), AMBIGUOUS),
        (seen(row(), memory=Memory(slots(7))), AMBIGUOUS),
    ],
    ids=["no delete", "unresolved", "nobody claims it", "no delete heard"],
)
def test_content_is_asked_for_where_a_delete_was_heard_and_nothing_else_helps(
    one: Seen, verdict: Verdict
) -> None:
    asked = Asked()
    assert asked.settle(one, verdict) is verdict
    assert asked.order == []


@pytest.mark.parametrize(
    ("family", "projection", "told"),
    [(WITH_CONTENT, DELETED, ""), (FAMILY, PROJECTION, "not those that this version knows")],
    ids=["an index names no message", "no table of content is known"],
)
def test_where_there_is_no_content_to_ask_for_nothing_is_asked(
    family: Family, projection: Projection, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Asked()
    contents = Contents(family, asked, asked, DELAY)
    assert contents.settle(projection, EXPUNGED, AMBIGUOUS) is AMBIGUOUS
    assert asked.order == []
    assert told in caplog.text


@pytest.mark.parametrize("error", [Refused("no SELECT"), ReadFailed("too many tombstones")])
def test_content_that_cannot_be_read_settles_nothing_and_is_told_once(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Asked(fails=error)
    contents = Contents(WITH_CONTENT, asked, asked, DELAY)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert contents.settle(PROJECTION, EXPUNGED, AMBIGUOUS) is AMBIGUOUS
    assert [each.getMessage() for each in caplog.records] == [
        f"no row is judged by its content: {error}"
    ]


# --- without lineage: what the source belongs to -------------------------------------------------


LIST_GONE = Seen(place(), shown(), (), frozenset({SHARED}), suspected=Kind.EXTRA_ROW)
ABSENT = Report(Kind.ABSENT_WITHOUT_DELETE, "its list has no truth row at all")


@pytest.mark.parametrize(
    ("asked", "order", "becomes"),
    [
        (Asked(), ["truth", "content"], Repair),
        (Asked(kept=frozenset({SHARED})), ["truth", "content"], Report),
        (Asked(placed=True), ["truth"], Report),
    ],
    ids=["mailbox gone", "mailbox there", "list there again"],
)
def test_rights_in_a_mailbox_that_is_gone_with_its_list_are_removed(
    asked: Asked, order: list[str], becomes: type
) -> None:
    contents = Contents(FROM_EVENTS, asked, asked, DELAY)
    answer = contents.settle(FROM_EVENTS.listing, LIST_GONE, ABSENT)
    assert isinstance(answer, becomes)
    assert asked.order == order
    if isinstance(answer, Repair):
        assert not answer.rests_on_memory
        assert answer.sentence == (
            f"user_rights: user {BOB} mailbox {SHARED} is not in the truth;"
            " its list and its mailbox are gone"
        )
    else:
        assert answer is ABSENT


def test_the_mailbox_of_a_list_is_read_by_its_own_key() -> None:
    session = ContentSession({"mailbox": [SHARED]}, column="id")
    tables = ContentTables(session, CassandraSettings(), FROM_EVENTS.truth)
    assert tables.having_content([SHARED, MESSAGE_ID]) == {SHARED}
    assert set(session.asked) == {"SELECT id FROM apache_james.mailbox WHERE id = ?"}


# --- how it is read ------------------------------------------------------------------------------


@dataclass
class ContentSession:
    """A session that knows which messages are in which table, and takes down what is asked."""

    tables: Mapping[str, Collection[KeyValue]]
    column: str = "messageid"
    asked: list[str] = field(default_factory=list)

    def prepare(self, query: str) -> Prepared:
        return Prepared(query)

    def execute_async(self, statement: Prepared, values: tuple[KeyValue]) -> Answer:
        self.asked.append(statement.query)
        table = statement.query.split("apache_james.")[1].split()[0]
        (source,) = values
        return Answer([{self.column: source}] if source in self.tables[table] else [])


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [(True, True, True), (True, False, True), (False, True, True), (False, False, False)],
)
def test_either_table_holds_content_and_the_older_is_asked_first(
    *, old: bool, new: bool, kept: bool
) -> None:
    ids = [MESSAGE_ID]
    session = ContentSession({"messagev2": ids if old else (), "messagev3": ids if new else ()})
    tables = ContentTables(session, CassandraSettings(), WITH_CONTENT.truth)
    assert tables.having_content([MESSAGE_ID, OTHER_ID]) == (frozenset(ids) if kept else set())
    older, newer = (
        f"SELECT messageid FROM apache_james.{table} WHERE messageid = ?" for table in BOTH
    )
    assert session.asked == [older, older, newer, newer]
