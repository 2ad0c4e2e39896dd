"""Content as evidence: when it is asked for, what it settles, and where it is not read at all."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import bind, keeping
from reconcilers.rows.confirm import judge
from reconcilers.rows.decision import ACCEPTABLE
from reconcilers.rows.evidence import ContentFound, by_content, heard_since_written
from reconcilers.rows.memory import Memory, merged
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import (
    KeyValue,
    Kind,
    Micros,
    Repair,
    Report,
    Row,
    Slot,
    Verdict,
)
from streaming.settings import CassandraSettings
from streaming.steps.contents import Contents
from streaming.tables.contents import ContentTables
from tests.builders.indexes import DELETED
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    MOMENT,
    NOW,
    OTHER_ID,
    PROJECTION,
    SCHEMA,
    SECOND,
    partial,
    row,
    seen,
    truth,
)
from tests.builders.slots import slots

CONTENT = {"messageid": "timeuuid"}
BOTH = {"messagev2": CONTENT, "messagev3": CONTENT}
WITH_CONTENT = bind(keeping(MESSAGE, ()), SCHEMA | BOTH)
HEARD = frozenset({LONG_AGO + DELAY})
TWICE = HEARD | {LONG_AGO + 2 * DELAY}
AMBIGUOUS = Report(Kind.AMBIGUOUS_RANGE_DELETE, "which one its user meant is not known")
EIGHT = Slot(MAILBOX, 8)


def orphan(memory: Memory) -> Seen:
    return seen(row(), memory=memory)


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


# --- a delete that could have taken the row ------------------------------------------------------


@pytest.mark.parametrize(("after", "heard"), [(-2 * DELAY - 1, False), (-2 * DELAY, True)])
def test_a_delete_takes_what_was_written_before_it(after: int, *, heard: bool) -> None:
    """The list's row is written up to a delay after the truth's, by another clock."""
    memory = Memory(slots(7), range_deletes=frozenset({LONG_AGO + after}))
    assert heard_since_written(FAMILY, orphan(memory), DELAY) is heard


def test_the_oldest_cell_says_when_a_row_was_written() -> None:
    memory = Memory(slots(7), range_deletes=HEARD)
    flagged = row(at=NOW, written={"internaldate": LONG_AGO})
    assert heard_since_written(FAMILY, seen(flagged, memory=memory), DELAY)
    assert not heard_since_written(FAMILY, seen(row(at=NOW), memory=memory), DELAY)


def test_a_late_change_of_a_flag_leaves_no_row_that_needs_a_delete_of_its_own() -> None:
    """Its user flags an orphan long after the delete; the repair takes the row, and this comes."""
    memory = Memory(slots(7), range_deletes=HEARD)
    stray = row(at=NOW, messageid=None)
    assert heard_since_written(FAMILY, seen(stray, memory=memory), DELAY)
    assert not heard_since_written(FAMILY, seen(stray, memory=Memory(slots(7))), DELAY)


def test_a_row_without_write_times_is_of_any_age() -> None:
    keys = Row({"mailboxid": MAILBOX, "uid": 7})
    assert heard_since_written(FAMILY, seen(keys, memory=Memory(range_deletes=HEARD)), DELAY)
    assert not heard_since_written(FAMILY, seen(keys), DELAY)


@pytest.mark.parametrize(
    ("which", "before", "meant"),
    [
        ("projection_deletes", 2 * DELAY, True),
        ("projection_deletes", 2 * DELAY + 1, False),
        ("row_deletes", -DELAY, True),  # perhaps of the whole partition: the row was there by then
        ("row_deletes", 1 - DELAY, False),
    ],
)
def test_a_delete_of_an_older_row_at_its_key_meant_that_one(
    which: str, before: Micros, *, meant: bool
) -> None:
    """So it is where a UID is given out again, or where we have removed a wrong row."""
    written = NOW - 200 * SECOND
    heard: dict[str, Any] = {which: frozenset({written - before})}
    memory = Memory(slots(7, 8), range_deletes=frozenset({NOW - 100 * SECOND}), **heard)
    answer = judge(FAMILY, PROJECTION, seen(row(at=written), memory=memory), MOMENT)
    assert isinstance(answer, Repair if meant else Report)
    assert not isinstance(answer, Repair) or not answer.rests_on_memory
    unheard = replace(memory, range_deletes=frozenset())
    heard_at_all = heard_since_written(FAMILY, seen(row(at=written), memory=unheard), DELAY)
    assert heard_at_all is (before <= 2 * DELAY)


def test_of_a_row_that_names_no_message_any_delete_is_its_own() -> None:
    memory = Memory(slots(7), projection_deletes=frozenset({1}))
    stray = seen(partial(flagseen=True), memory=memory)
    assert isinstance(judge(FAMILY, PROJECTION, stray, MOMENT), Repair)


# --- something was missed (A3) -------------------------------------------------------------------


def test_one_message_that_contradicts_makes_no_memory_whole() -> None:
    whole, contradicted = Memory(slots(7), complete_at=0), Memory(complete_at=0)
    assert merged(Slot(MAILBOX, 7), [whole, contradicted]).complete_at == 0
    contradicted = replace(contradicted, range_deletes=HEARD)
    assert contradicted.contradicted
    assert merged(Slot(MAILBOX, 7), [whole, contradicted]).complete_at is None


# --- what content settles ------------------------------------------------------------------------

SETTLED = {
    "nothing is remembered of it": Memory(range_deletes=HEARD),
    "it alone is remembered": Memory(slots(7), range_deletes=HEARD),
    "another had ended before the row was written": Memory(
        slots(7, 8), range_deletes=HEARD, sibling_deletes={EIGHT: frozenset({1})}
    ),
    "lost before memory was whole": Memory(
        slots(7), complete_at=LONG_AGO, range_deletes=HEARD, lost_before=slots(7)
    ),
}
LOST = {
    "one delete for two rows": Memory(slots(7, 8), range_deletes=HEARD),
    "two deletes for two rows": Memory(slots(7, 8), range_deletes=TWICE),
    "one delete that was sent again": Memory(
        slots(7, 8), range_deletes=frozenset({LONG_AGO, LONG_AGO + SECOND})
    ),
    "another was read before memory began anew": Memory(
        slots(7, 8), range_deletes=TWICE, lost_before=slots(8)
    ),
    "the other had ended, and the truth had it after that": Memory(
        slots(7, 8), range_deletes=HEARD, sibling_deletes={EIGHT: frozenset({1})}, had={EIGHT: NOW}
    ),
    "the other is not sure": Memory(slots(7), slots(8), range_deletes=HEARD),
    "two deletes, both for the other": Memory(
        slots(7, 8), range_deletes=TWICE, sibling_deletes={EIGHT: TWICE}
    ),
    "two deletes for three rows": Memory(slots(7, 8, 9), range_deletes=TWICE),
    "read before memory began anew": Memory(slots(7), range_deletes=TWICE, lost_before=slots(7)),
}


@pytest.mark.parametrize("memory", SETTLED.values(), ids=SETTLED.keys())
def test_a_row_of_which_nothing_is_left_goes(memory: Memory) -> None:
    verdict = by_content(FAMILY, orphan(memory), ContentFound.GONE, AMBIGUOUS, DELAY)
    assert isinstance(verdict, Repair)
    assert verdict.difference.kind is Kind.EXTRA_ROW
    assert verdict.rests_on_memory
    assert verdict.sentence == (
        f"messages: mailbox {MAILBOX} UID 7 is not in the truth; a delete of its message here was"
        " heard, and the message's content is gone"
    )


@pytest.mark.parametrize("memory", LOST.values(), ids=LOST.keys())
def test_a_row_that_a_delete_took_with_others_is_the_last_trace(memory: Memory) -> None:
    verdict = by_content(FAMILY, orphan(memory), ContentFound.GONE, AMBIGUOUS, DELAY)
    assert isinstance(verdict, Report)
    assert verdict.kind is Kind.CONTENT_LOST
    assert verdict.kind in ACCEPTABLE
    assert f"the content of message {MESSAGE_ID} is gone" in verdict.sentence


@pytest.mark.parametrize("content", [ContentFound.KEPT, ContentFound.NOT_KNOWN])
@pytest.mark.parametrize("memory", [*SETTLED.values(), *LOST.values()])
def test_what_can_be_read_stays(memory: Memory, content: ContentFound) -> None:
    assert by_content(FAMILY, orphan(memory), content, AMBIGUOUS, DELAY) is AMBIGUOUS


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

    def settle(self, one: Seen, verdict: Verdict = AMBIGUOUS) -> Verdict:
        return Contents(WITH_CONTENT, self, self, DELAY).settle(PROJECTION, one, verdict)


EXPUNGED = orphan(SETTLED["nothing is remembered of it"])


def test_the_truth_is_asked_once_more_before_content_is() -> None:
    asked = Asked()
    assert isinstance(asked.settle(EXPUNGED), Repair)
    assert asked.order == ["truth", "content"]


@pytest.mark.parametrize(
    ("asked", "order"),
    [(Asked(placed=True), ["truth"]), (Asked(kept=frozenset({MESSAGE_ID})), ["truth", "content"])],
    ids=["in another mailbox", "not deleted yet"],
)
def test_a_message_that_is_somewhere_is_kept(asked: Asked, order: list[str]) -> None:
    assert asked.settle(EXPUNGED) is AMBIGUOUS
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


def test_an_index_names_no_message() -> None:
    asked = Asked()
    contents = Contents(WITH_CONTENT, asked, asked, DELAY)
    assert contents.settle(DELETED, EXPUNGED, AMBIGUOUS) is AMBIGUOUS
    assert asked.order == []


def test_where_no_table_of_content_is_known_nothing_is_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = Asked()
    assert (
        Contents(FAMILY, asked, asked, DELAY).settle(PROJECTION, EXPUNGED, AMBIGUOUS) is AMBIGUOUS
    )
    assert asked.order == []
    assert "its tables are not those that this version knows" in caplog.text


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


# --- how it is read ------------------------------------------------------------------------------


@dataclass
class Prepared:
    """A statement, as it is prepared."""

    query: str
    column_metadata: tuple[()] = ()
    result_metadata: tuple[()] = ()


@dataclass
class Answer:
    """What a statement gives."""

    rows: list[dict[str, object]]

    def result(self) -> list[dict[str, object]]:
        return self.rows


@dataclass
class ContentSession:
    """A session that knows which messages are in which table, and takes down what is asked."""

    tables: Mapping[str, Collection[KeyValue]]
    asked: list[str] = field(default_factory=list)

    def prepare(self, query: str) -> Prepared:
        return Prepared(query)

    def execute_async(self, statement: Prepared, values: tuple[KeyValue]) -> Answer:
        self.asked.append(statement.query)
        table = statement.query.split("apache_james.")[1].split()[0]
        (source,) = values
        return Answer([{"messageid": source}] if source in self.tables[table] else [])


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
