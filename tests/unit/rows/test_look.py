"""Steps 3 and 4 on fakes: deletes that name no UID, of messages that lineage hardly knows."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.rows.memory import Entry, born_at
from reconcilers.words.model import Kind, Micros, Slot, Wake
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
    row,
    truth,
)
from tests.builders.slots import uid_of
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.memory_tables import MemoryTables

WATCHED_SINCE = LONG_AGO
BEFORE_WATCHING = LONG_AGO - SECOND
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


def look(wake: Wake, tables: MemoryTables, lineage: MemoryLineage) -> LookResult:
    return Look(FAMILY, tables, lineage, WATCHED_SINCE).at([wake], NOW)


def extra(looked: LookResult) -> set[int]:
    """The UIDs where the look found a row too many."""
    return {uid_of(each.slot) for each in looked.suspects if each.kind is Kind.EXTRA_ROW}


def test_the_message_of_these_tests_was_born_before_watching_began() -> None:
    born = born_at(MESSAGE_ID)
    assert born is not None
    assert born < WATCHED_SINCE


@pytest.mark.parametrize("recorded_at", [None, BEFORE_WATCHING], ids=["told", "read before"])
def test_an_old_message_of_which_one_uid_was_heard_of_is_searched_for_whole(
    recorded_at: Micros | None,
) -> None:
    tables = projected(7, 8)
    looked = look(RANGED, tables, knowing(7, recorded_at))
    assert tables.scanned == [MAILBOX]
    assert extra(looked) == {7, 8}


def test_a_message_that_was_read_while_watching_needs_no_search() -> None:
    tables = projected(7)
    looked = look(RANGED, tables, knowing(7, recorded_at=WATCHED_SINCE))
    assert tables.scanned == []
    assert extra(looked) == {7}


def test_a_message_that_nobody_remembers_is_searched_for() -> None:
    tables = projected(8)
    looked = look(RANGED, tables, MemoryLineage())
    assert tables.scanned == [MAILBOX]
    assert extra(looked) == {8}


def test_once_the_listing_was_read_whole_nobody_is_searched_for() -> None:
    """What is remembered then is all that there is, also of a message of which nothing is."""
    tables = projected(8)
    look = Look(FAMILY, tables, MemoryLineage(), WATCHED_SINCE, listed_at=WATCHED_SINCE + 1)
    for _ in range(2):
        assert extra(look.at([RANGED], NOW)) == set()
    assert tables.scanned == []


def test_also_a_message_that_was_born_while_watching_is_searched_for_if_nobody_remembers_it() -> (
    None
):
    """Its memory is whole, but empty: what of it is here was not heard of yet."""
    born, tables = born_at(MESSAGE_ID), projected(8)
    assert born is not None
    looked = Look(FAMILY, tables, MemoryLineage(), watched_since=born - 1).at([RANGED], NOW)
    assert tables.scanned == [MAILBOX]
    assert extra(looked) == {8}


def test_a_message_that_came_and_went_within_one_look_is_not_searched_for_and_is_let_go() -> None:
    born, tables, lineage = born_at(MESSAGE_ID), projected(), MemoryLineage()
    assert born is not None
    came = Wake(slot(7).key, MESSAGE_ID, oldest=NOW, from_truth=True)
    shown = Wake(slot(7).key, MESSAGE_ID, oldest=NOW)
    hidden = replace(shown, source=None, deleted_from=PROJECTION.table, deleted_at=NOW)
    wakes = [came, shown, RANGED, hidden]
    looked = Look(FAMILY, tables, lineage, watched_since=born - 1).at(wakes, NOW)
    assert extra(looked) == set()
    assert tables.scanned == []
    (entry,) = lineage.of_sources([MESSAGE_ID])[MESSAGE_ID]
    assert (entry.slot, entry.in_truth, entry.expiring) == (slot(7), True, True)


def test_a_partition_delete_of_a_message_that_nobody_remembers_is_looked_at_again_once() -> None:
    first = look(PARTITION, projected(), MemoryLineage())
    assert first.again == (PARTITION,)
    assert (first.unresolved, first.suspects) == (1, ())
    second = look(replace(PARTITION, looked_again=True), projected(), MemoryLineage())
    assert second.again == ()
    assert second.unresolved == 0


def test_a_partition_delete_of_a_message_that_is_remembered_is_resolved() -> None:
    looked = look(PARTITION, projected(7), knowing(7, WATCHED_SINCE))
    assert looked.again == ()
    assert looked.unresolved == 0
    assert extra(looked) == {7}


def test_a_partition_delete_of_a_message_that_is_there_again_is_resolved() -> None:
    tables = projected(7)
    tables.truths[MESSAGE_ID] = (truth(),)
    looked = look(PARTITION, tables, MemoryLineage())
    assert looked.again == ()
    assert looked.unresolved == 0
    assert looked.examined == 1


@pytest.mark.parametrize("column", ["threadid", "flagseen"])
def test_a_suspect_names_the_columns_that_differ(column: str) -> None:
    tables = projected(7)
    tables.rows[PROJECTION.name][slot(7)] = row({column: None})
    tables.truths[MESSAGE_ID] = (truth(threadid=OTHER_ID if column == "threadid" else None),)
    wake = Wake(slot(7).key, MESSAGE_ID, oldest=NOW)
    (suspect,) = look(wake, tables, MemoryLineage()).suspects
    assert (suspect.kind, suspect.columns) == (Kind.DIFFERING_CELLS, (column,))
