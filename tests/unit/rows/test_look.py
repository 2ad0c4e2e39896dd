"""Steps 3 and 4 on fakes: deletes that name no UID, or no message."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.rows.deletes import TruthDelete
from reconcilers.rows.memory import Entry, born_at
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Suspect, Wake
from streaming.steps.look import Look, LookResult
from tests.builders.rows import (
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    OTHER_ID,
    PROJECTION,
    SECOND,
    SLOT,
    row,
    truth,
)
from tests.builders.slots import uid_of
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.memory_tables import MemoryTables

WATCHED_SINCE = LONG_AGO
BEFORE_WATCHING = LONG_AGO - SECOND
MINUTE: Micros = 60 * SECOND
RANGED = Wake(
    (MAILBOX, None),
    MESSAGE_ID,
    oldest=NOW,
    deleted_from="imapuidtable",
    deleted_at=NOW,
    from_truth=True,
)
PARTITION = replace(RANGED, key=(None, None))


def slot(uid: int) -> Slot:
    return Slot(MAILBOX, uid)


def projected(*uids: int) -> MemoryTables:
    """Only the projection still has these UIDs of the message, and one of another message."""
    rows = {slot(uid): row(uid=uid) for uid in uids}
    rows[slot(99)] = row(uid=99, messageid=OTHER_ID)
    return MemoryTables(rows={PROJECTION.name: rows})


def knowing(uid: int, recorded_at: Micros | None, messageid: UUID = MESSAGE_ID) -> MemoryLineage:
    lineage = MemoryLineage()
    lineage.remember([Entry(messageid, Slot(MAILBOX, uid), in_truth=True, recorded_at=recorded_at)])
    return lineage


def look(
    *wakes: Wake,
    tables: MemoryTables | None = None,
    lineage: MemoryLineage | None = None,
    since: Micros = WATCHED_SINCE,
) -> LookResult:
    kept = MemoryLineage() if lineage is None else lineage
    return Look(FAMILY, tables or MemoryTables(), kept, since).at(wakes, NOW)


def extra(looked: LookResult) -> set[int]:
    """The UIDs where the look found a row too many."""
    return {uid_of(each.slot) for each in looked.suspects if each.kind is Kind.EXTRA_ROW}


def outcome(looked: LookResult) -> str:
    lost = [each for each in looked.suspects if each.kind is Kind.UNRESOLVED]
    assert looked.unresolved == len(lost) + len(looked.again)
    return "unresolved" if lost else "looked at again" if looked.again else "resolved"


# --- deletes that name no UID, of messages that lineage hardly knows ------------------------------


def born() -> Micros:
    at = born_at(MESSAGE_ID)
    assert at is not None
    return at


def test_the_message_of_these_tests_was_born_before_watching_began() -> None:
    assert born() < WATCHED_SINCE


@pytest.mark.parametrize(
    ("lineage", "since", "there", "searched"),
    [
        (knowing(7, None), WATCHED_SINCE, {7, 8}, True),
        (knowing(7, BEFORE_WATCHING), WATCHED_SINCE, {7, 8}, True),
        (knowing(7, WATCHED_SINCE), WATCHED_SINCE, {7}, False),
        (MemoryLineage(), WATCHED_SINCE, {8}, True),
        # its memory is whole, but empty: what of it is here was not heard of yet
        (MemoryLineage(), born() - 1, {8}, True),
    ],
    ids=["one UID told", "read before", "read while watching", "unknown", "born while watching"],
)
def test_a_message_of_which_not_all_is_known_is_searched_for_whole(
    lineage: MemoryLineage, since: Micros, there: set[int], *, searched: bool
) -> None:
    tables = projected(*there)
    looked = look(RANGED, tables=tables, lineage=lineage, since=since)
    assert tables.scanned == ([MAILBOX] if searched else [])
    assert extra(looked) == there


def test_once_the_listing_was_read_whole_nobody_is_searched_for() -> None:
    """What is remembered then is all that there is, also of a message of which nothing is."""
    tables = projected(8)
    look = Look(FAMILY, tables, MemoryLineage(), WATCHED_SINCE, listed_at=WATCHED_SINCE + 1)
    for _ in range(2):
        assert extra(look.at([RANGED], NOW)) == set()
    assert tables.scanned == []


def test_a_message_that_came_and_went_within_one_look_is_not_searched_for_and_is_let_go() -> None:
    tables, lineage = projected(), MemoryLineage()
    came = Wake(slot(7).key, MESSAGE_ID, oldest=NOW, from_truth=True)
    shown = Wake(slot(7).key, MESSAGE_ID, oldest=NOW)
    hidden = replace(shown, source=None, deleted_from=PROJECTION.table, deleted_at=NOW)
    wakes = [came, shown, RANGED, hidden]
    looked = look(*wakes, tables=tables, lineage=lineage, since=born() - 1)
    assert extra(looked) == set()
    assert tables.scanned == []
    (entry,) = lineage.of_sources([MESSAGE_ID])[MESSAGE_ID]
    assert (entry.slot, entry.in_truth, entry.expiring) == (slot(7), True, True)


@pytest.mark.parametrize("column", ["threadid", "flagseen"])
def test_a_suspect_names_the_columns_that_differ(column: str) -> None:
    tables = projected(7)
    tables.rows[PROJECTION.name][slot(7)] = row({column: None})
    tables.truths[MESSAGE_ID] = (truth(threadid=OTHER_ID if column == "threadid" else None),)
    wake = Wake(slot(7).key, MESSAGE_ID, oldest=NOW)
    (suspect,) = look(wake, tables=tables).suspects
    assert (suspect.kind, suspect.columns) == (Kind.DIFFERING_CELLS, (column,))


# --- a whole message ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wake", "truths", "expected"),
    [
        (PARTITION, {}, "looked at again"),
        (replace(PARTITION, looked_again=True), {}, "resolved"),
        (replace(PARTITION, source=None), {}, "resolved"),
        (RANGED, {}, "resolved"),
        (PARTITION, {MESSAGE_ID: (truth(),)}, "resolved"),
    ],
    ids=["first", "only once", "of none", "in one mailbox", "made again since"],
)
def test_a_message_that_was_deleted_whole_and_that_nobody_remembers_is_looked_at_again_once(
    wake: Wake, truths: dict[KeyValue, tuple[Row, ...]], expected: str
) -> None:
    looked = look(wake, tables=MemoryTables(truths, projected(7).rows if truths else {}))
    assert outcome(looked) == expected
    assert looked.again == ((PARTITION,) if expected == "looked at again" else ())
    assert (looked.suspects, looked.examined) == ((), len(truths))


def test_a_partition_delete_of_a_message_that_is_remembered_is_resolved() -> None:
    looked = look(PARTITION, tables=projected(7), lineage=knowing(7, WATCHED_SINCE))
    assert (looked.again, looked.unresolved, extra(looked)) == ((), 0, {7})


# --- deleted rows of the list whose message nobody remembers --------------------------------------

DELETED_AT = NOW - 100 * SECOND
GONE = Wake(
    (MAILBOX, 7),
    None,
    oldest=DELETED_AT - SECOND,
    deleted_from="messageidtable",
    deleted_at=DELETED_AT,
)
AGAIN = replace(GONE, looked_again=True)
UNRESOLVED = Suspect(
    SLOT,
    frozenset(),
    Kind.UNRESOLVED,
    PROJECTION.name,
    DELETED_AT - SECOND,
    looked_again=True,
)


def test_the_first_look_only_comes_back_and_the_second_tells_a_person() -> None:
    first, second = look(GONE), look(AGAIN)
    assert (first.again, first.suspects, first.unresolved) == ((GONE,), (), 1)
    assert (second.again, second.suspects, second.unresolved) == ((), (UNRESOLVED,), 1)


@pytest.mark.parametrize(
    ("wake", "mailbox", "apart", "expected"),
    [
        *((AGAIN, MAILBOX, apart, "unresolved") for apart in (-MINUTE - 1, MINUTE + 1)),
        *((AGAIN, MAILBOX, apart, "resolved") for apart in (-MINUTE, 0, MINUTE)),
        (AGAIN, OTHER_ID, 0, "unresolved"),
        (GONE, MAILBOX, 0, "looked at again"),
    ],
)
def test_a_truth_delete_of_its_mailbox_within_a_minute_explains_it_at_the_second_look(
    wake: Wake, mailbox: UUID, apart: Micros, expected: str
) -> None:
    lineage = MemoryLineage()
    lineage.remember_deletes([TruthDelete(OTHER_ID, (mailbox, None), DELETED_AT + apart)])
    assert outcome(look(wake, lineage=lineage)) == expected


@pytest.mark.parametrize(
    ("at", "within"),
    [
        (2**63 - 1, [2**63 - 1 - MINUTE, 2**63 - 1]),
        (-(2**63) + 1, [-(2**63), -(2**63) + 1 + MINUTE]),
    ],
)
def test_a_delete_at_an_absurd_time_asks_within_64_bits(at: Micros, within: list[Micros]) -> None:
    asked: list[Micros] = []

    class Asked(MemoryLineage):
        def truth_deletes_in_group(self, group: KeyValue, since: Micros, until: Micros) -> bool:
            asked.extend((since, until))
            return False

    assert outcome(look(replace(AGAIN, deleted_at=at), lineage=Asked())) == "unresolved"
    assert asked == within


@pytest.mark.parametrize("wake", [GONE, AGAIN], ids=["first", "again"])
def test_a_row_that_is_there_again_or_whose_message_is_remembered_is_resolved(wake: Wake) -> None:
    tables = MemoryTables(rows={PROJECTION.name: {SLOT: row(messageid=None)}})
    assert outcome(look(wake, tables=tables)) == "resolved"
    lineage = MemoryLineage()
    lineage.remember([Entry(MESSAGE_ID, SLOT, in_truth=False)])
    assert outcome(look(wake, lineage=lineage)) == "resolved"


@pytest.mark.parametrize(
    "wake",
    [
        pytest.param(replace(GONE, source=MESSAGE_ID), id="its event named the message"),
        pytest.param(replace(GONE, deleted_at=None, deleted_from=None), id="it is no delete"),
        pytest.param(replace(GONE, deleted_from="imapuidtable"), id="of the truth"),
        pytest.param(replace(GONE, deleted_from="messagedeleted"), id="of an index"),
        pytest.param(replace(GONE, key=(MAILBOX, None)), id="of a whole mailbox"),
    ],
)
@pytest.mark.parametrize("looked_again", [False, True], ids=["first", "again"])
def test_what_is_no_riddle(wake: Wake, *, looked_again: bool) -> None:
    assert outcome(look(replace(wake, looked_again=looked_again))) == "resolved"


def test_a_riddle_keeps_up_none_of_the_others() -> None:
    other = replace(GONE, key=(MAILBOX, 8), deleted_from="imapuidtable")
    looked = look(other, GONE)
    assert looked.again == (GONE,)
    assert looked.examined == 2
