"""What a look tells besides its suspects: changes by mailbox, slots touched, what it stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from checkpoints.expiries import Expiry
from reconcilers.rows.memory import Entry
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Suspect, Wake
from streaming.pipeline.scheduled import scheduled_wake
from streaming.steps.look import Look, LookResult
from streaming.steps.look_state import LookState, Target
from streaming.steps.looks import Looks
from tests.builders.rows import (
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    OTHER_ID,
    PROJECTION,
    SLOT,
    row,
    truth,
)
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.memory_tables import MemoryTables

OTHER_MAILBOX = UUID("11111111-0000-1000-8000-00000000000f")
LIST = PROJECTION.name
CHANGED = Wake((MAILBOX, 7), MESSAGE_ID, oldest=NOW, from_truth=True)
AGAIN = replace(CHANGED, looked_again=True, projection=LIST, from_truth=False)
RANGED = Wake(
    (MAILBOX, None),
    MESSAGE_ID,
    oldest=NOW,
    deleted_from="imapuidtable",
    deleted_at=NOW,
    from_truth=True,
)


def look(
    *wakes: Wake, tables: MemoryTables | None = None, lineage: MemoryLineage | None = None
) -> LookResult:
    kept = MemoryLineage() if lineage is None else lineage
    return Look(FAMILY, tables or MemoryTables(), kept, LONG_AGO).at(wakes, NOW)


def knowing(*entries: Entry) -> MemoryLineage:
    lineage = MemoryLineage()
    lineage.remember(entries)
    return lineage


# --- changes and UIDs, for the counters ----------------------------------------------------------


def test_the_changes_of_each_mailbox_are_counted_and_their_uids_told() -> None:
    looked = look(
        replace(CHANGED, changes=3),
        replace(CHANGED, source=None, changes=2),
        replace(CHANGED, key=(MAILBOX, 8)),
        replace(CHANGED, key=(OTHER_MAILBOX, 9)),
    )
    assert looked.changes == {MAILBOX: 6, OTHER_MAILBOX: 1}
    touched = [Slot(MAILBOX, 7), Slot(MAILBOX, 8), Slot(OTHER_MAILBOX, 9)]
    assert sorted(looked.touched) == touched
    assert looked.examined == 3


def test_a_look_again_is_no_change() -> None:
    looked = look(AGAIN)
    assert (looked.changes, looked.touched, looked.examined) == ({}, (), 1)


def test_a_slot_whose_cell_has_expired_is_touched_and_is_no_change() -> None:
    """No event tells of an expiry, and its chunk would stand as it was counted."""
    looked = look(scheduled_wake(Expiry(SLOT, MESSAGE_ID, NOW)))
    assert (looked.changes, looked.touched) == ({}, (SLOT,))


def test_a_delete_that_names_no_uid_counts_once_more_than_what_it_led_to() -> None:
    known = knowing(
        Entry(MESSAGE_ID, Slot(MAILBOX, 7), in_truth=True, recorded_at=LONG_AGO),
        Entry(MESSAGE_ID, Slot(MAILBOX, 8), in_truth=True, recorded_at=LONG_AGO),
    )
    looked = look(replace(RANGED, changes=2), lineage=known)
    assert looked.changes == {MAILBOX: 2 + 2 * 2}
    assert sorted(looked.touched) == [Slot(MAILBOX, 7), Slot(MAILBOX, 8)]


@pytest.mark.parametrize(
    ("wake", "changes"),
    [
        (RANGED, {MAILBOX: 1}),
        (replace(RANGED, looked_again=True), {}),
        (replace(RANGED, key=(None, None)), {}),
    ],
    ids=["a change", "a look again", "of no mailbox"],
)
def test_a_delete_that_led_to_nothing(wake: Wake, changes: dict[UUID, int]) -> None:
    assert look(wake).changes == changes


# --- keys to slots -------------------------------------------------------------------------------


def test_a_mailbox_without_more_means_all_that_is_remembered_there() -> None:
    known = knowing(
        Entry(MESSAGE_ID, Slot(MAILBOX, 7), in_truth=True),
        Entry(OTHER_ID, Slot(MAILBOX, 8), in_truth=True),
        Entry(OTHER_ID, Slot(OTHER_MAILBOX, 9), in_truth=True),
    )
    tables = MemoryTables(truths={OTHER_ID: (truth(uid=8, messageid=OTHER_ID),)})
    wake = Wake((MAILBOX, None), None, oldest=NOW)
    (looked,) = Looks(Look(FAMILY, tables, known, LONG_AGO)).at([wake], NOW)
    assert (looked.examined, looked.changes) == (2, {MAILBOX: 3})
    assert {(each.slot, each.kind) for each in looked.suspects} == {
        (Slot(MAILBOX, 8), Kind.MISSING_ROW)
    }


def test_a_message_means_its_slots_in_the_truth_and_those_remembered() -> None:
    known = knowing(Entry(MESSAGE_ID, Slot(MAILBOX, 8), in_truth=True, recorded_at=LONG_AGO))
    tables = MemoryTables(
        truths={MESSAGE_ID: (truth(), truth(uid=9, mailboxid=OTHER_MAILBOX))},
        rows={LIST: {Slot(MAILBOX, 8): row(uid=8)}},
    )
    everywhere = look(Wake((None, None), MESSAGE_ID), tables=tables, lineage=known)
    assert {(each.slot, each.kind) for each in everywhere.suspects} == {
        (SLOT, Kind.MISSING_ROW),
        (Slot(MAILBOX, 8), Kind.EXTRA_ROW),
        (Slot(OTHER_MAILBOX, 9), Kind.MISSING_ROW),
    }
    here = look(Wake((MAILBOX, None), MESSAGE_ID), tables=tables, lineage=known)
    assert {each.slot for each in here.suspects} == {SLOT, Slot(MAILBOX, 8)}


def test_a_row_of_the_list_names_a_message_that_is_asked_too() -> None:
    tables = MemoryTables(
        truths={OTHER_ID: (truth(messageid=OTHER_ID),)},
        rows={LIST: {SLOT: row(messageid=OTHER_ID)}},
    )
    assert look(replace(CHANGED, source=None), tables=tables).suspects == ()


def test_a_message_that_is_remembered_at_the_slot_is_asked_too() -> None:
    tables = MemoryTables(truths={OTHER_ID: (truth(messageid=OTHER_ID),)})
    known = knowing(Entry(OTHER_ID, Slot(MAILBOX, 7), in_truth=True))
    (suspect,) = look(replace(CHANGED, source=None), tables=tables, lineage=known).suspects
    assert (suspect.kind, suspect.sources) == (Kind.MISSING_ROW, frozenset({OTHER_ID}))


def test_each_message_of_the_truth_is_read_once() -> None:
    class Counting(MemoryTables):
        def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
            wanted = list(messageids)
            read.extend(wanted)
            return super().truth_rows(wanted)

    read: list[KeyValue] = []
    tables = Counting(truths={MESSAGE_ID: (truth(),)}, rows={LIST: {SLOT: row()}})
    look(CHANGED, replace(RANGED, deleted_at=None, deleted_from=None), tables=tables)
    assert read == [MESSAGE_ID]


# --- suspects ------------------------------------------------------------------------------------


def test_what_agrees_is_no_suspect_but_is_confirmed_when_looked_at_again() -> None:
    tables = MemoryTables(truths={MESSAGE_ID: (truth(),)}, rows={LIST: {SLOT: row()}})
    assert look(CHANGED, tables=tables).suspects == ()
    again = replace(AGAIN, suspected=Kind.EXTRA_ROW, oldest=LONG_AGO)
    assert look(again, tables=tables).suspects == (
        Suspect(
            SLOT,
            frozenset({MESSAGE_ID}),
            None,
            LIST,
            LONG_AGO,
            looked_again=True,
            suspected=Kind.EXTRA_ROW,
        ),
    )


@pytest.mark.parametrize(
    ("times", "oldest"),
    [
        ((None, None), None),
        ((None, 5), 5),
        ((5, None), 5),
        ((5, 3), 3),
        ((3, 5), 3),
    ],
)
def test_the_oldest_write_counts(times: tuple[Micros | None, ...], oldest: Micros | None) -> None:
    target = Target(SLOT)
    for at in times:
        target.add(replace(CHANGED, oldest=at), None)
    assert target.suspect(LIST, None).oldest == oldest


def test_the_first_suspicion_of_each_projection_is_kept() -> None:
    target = Target(SLOT)
    target.add(replace(AGAIN, suspected=None), None)
    target.add(replace(AGAIN, suspected=Kind.EXTRA_ROW), MESSAGE_ID)
    target.add(replace(AGAIN, suspected=Kind.MISSING_ROW), None)
    target.add(replace(AGAIN, projection="unseen_uids"), None)
    assert target.suspect(LIST, None).suspected is Kind.EXTRA_ROW
    assert target.suspect("unseen_uids", None).suspected is None
    assert target.suspect("unseen_uids", None).looked_again
    assert not target.suspect("deleted_uids", None).looked_again
    assert target.sources == {MESSAGE_ID}
    assert target.changes == 0


def test_a_slot_has_one_target() -> None:
    state = LookState()
    assert state.target(SLOT) is state.target(Slot(MAILBOX, 7))
    assert state.target(SLOT) is not state.target(Slot(MAILBOX, 8))
