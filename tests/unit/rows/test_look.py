"""Steps 3 and 4 on fakes: deletes that name no UID or no message; what a look tells besides.

That is: changes by mailbox, slots touched, and what a key stands for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from checkpoints.expiries import Expiry
from reconcilers.rows.deletes import TruthDelete
from reconcilers.rows.memory import Entry, born_at
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Suspect, Wake
from streaming.pipeline.scheduled_looks import scheduled_wake
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
    OTHER_MAILBOX,
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
CHANGED = Wake((MAILBOX, 7), MESSAGE_ID, oldest=NOW, from_truth=True)
CHANGED_AGAIN = replace(CHANGED, looked_again=True, projection=PROJECTION.name, from_truth=False)


def slot(uid: int) -> Slot:
    return Slot(MAILBOX, uid)


def projected(*uids: int) -> MemoryTables:
    """Only the projection still has these UIDs of the message, and one of another message."""
    rows = {slot(uid): row(uid=uid) for uid in uids}
    rows[slot(99)] = row(uid=99, messageid=OTHER_ID)
    return MemoryTables(rows={PROJECTION.name: rows})


def holding(*entries: Entry) -> MemoryLineage:
    lineage = MemoryLineage()
    lineage.remember(entries)
    return lineage


def knowing(uid: int, recorded_at: Micros | None) -> MemoryLineage:
    return holding(Entry(MESSAGE_ID, slot(uid), in_truth=True, recorded_at=recorded_at))


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
        # its lineage is complete, but empty: what of it is here was not heard of yet
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
    known = holding(Entry(MESSAGE_ID, SLOT, in_truth=False))
    assert outcome(look(wake, lineage=known)) == "resolved"


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


# --- changes and UIDs, for the counters ----------------------------------------------------------


def test_the_changes_of_each_mailbox_are_counted_and_their_uids_told() -> None:
    looked = look(
        replace(CHANGED, changes=3),
        replace(CHANGED, source=None, changes=2),
        replace(CHANGED, key=(MAILBOX, 8)),
        replace(CHANGED, key=(OTHER_MAILBOX, 9)),
    )
    assert looked.changes == {MAILBOX: 6, OTHER_MAILBOX: 1}
    touched = [slot(7), slot(8), Slot(OTHER_MAILBOX, 9)]
    assert sorted(looked.touched) == touched
    assert looked.examined == 3


def test_a_look_again_is_no_change() -> None:
    looked = look(CHANGED_AGAIN)
    assert (looked.changes, looked.touched, looked.examined) == ({}, (), 1)


def test_a_slot_whose_cell_has_expired_is_touched_and_is_no_change() -> None:
    """No event tells of an expiry, and its chunk would stand as it was counted."""
    looked = look(scheduled_wake(Expiry(SLOT, MESSAGE_ID, NOW)))
    assert (looked.changes, looked.touched) == ({}, (SLOT,))


def test_a_delete_that_names_no_uid_counts_once_more_than_what_it_led_to() -> None:
    known = holding(
        Entry(MESSAGE_ID, SLOT, in_truth=True, recorded_at=LONG_AGO),
        Entry(MESSAGE_ID, slot(8), in_truth=True, recorded_at=LONG_AGO),
    )
    looked = look(replace(RANGED, changes=2), lineage=known)
    assert looked.changes == {MAILBOX: 2 + 2 * 2}
    assert sorted(looked.touched) == [slot(7), slot(8)]


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
    known = holding(
        Entry(MESSAGE_ID, slot(7), in_truth=True),
        Entry(OTHER_ID, slot(8), in_truth=True),
        Entry(OTHER_ID, Slot(OTHER_MAILBOX, 9), in_truth=True),
    )
    tables = MemoryTables(truths={OTHER_ID: (truth(uid=8, messageid=OTHER_ID),)})
    wake = Wake((MAILBOX, None), None, oldest=NOW)
    (looked,) = Looks(Look(FAMILY, tables, known, LONG_AGO)).at([wake], NOW)
    assert (looked.examined, looked.changes) == (2, {MAILBOX: 3})
    assert {(each.slot, each.kind) for each in looked.suspects} == {(slot(8), Kind.MISSING_ROW)}


def test_a_message_means_its_slots_in_the_truth_and_those_remembered() -> None:
    known = holding(Entry(MESSAGE_ID, slot(8), in_truth=True, recorded_at=LONG_AGO))
    tables = MemoryTables(
        truths={MESSAGE_ID: (truth(), truth(uid=9, mailboxid=OTHER_MAILBOX))},
        rows={PROJECTION.name: {slot(8): row(uid=8)}},
    )
    everywhere = look(Wake((None, None), MESSAGE_ID), tables=tables, lineage=known)
    assert {(each.slot, each.kind) for each in everywhere.suspects} == {
        (SLOT, Kind.MISSING_ROW),
        (slot(8), Kind.EXTRA_ROW),
        (Slot(OTHER_MAILBOX, 9), Kind.MISSING_ROW),
    }
    here = look(Wake((MAILBOX, None), MESSAGE_ID), tables=tables, lineage=known)
    assert {each.slot for each in here.suspects} == {SLOT, slot(8)}


def test_a_message_that_the_list_names_or_that_is_remembered_at_the_slot_is_asked_too() -> None:
    tables = MemoryTables(
        truths={OTHER_ID: (truth(messageid=OTHER_ID),)},
        rows={PROJECTION.name: {SLOT: row(messageid=OTHER_ID)}},
    )
    assert look(replace(CHANGED, source=None), tables=tables).suspects == ()
    tables.rows.clear()
    known = holding(Entry(OTHER_ID, slot(7), in_truth=True))
    (suspect,) = look(replace(CHANGED, source=None), tables=tables, lineage=known).suspects
    assert (suspect.kind, suspect.sources) == (Kind.MISSING_ROW, frozenset({OTHER_ID}))


def test_each_message_of_the_truth_is_read_once() -> None:
    class Counting(MemoryTables):
        def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
            wanted = list(messageids)
            read.extend(wanted)
            return super().truth_rows(wanted)

    read: list[KeyValue] = []
    tables = Counting(truths={MESSAGE_ID: (truth(),)}, rows={PROJECTION.name: {SLOT: row()}})
    look(CHANGED, replace(RANGED, deleted_at=None, deleted_from=None), tables=tables)
    assert read == [MESSAGE_ID]


# --- suspects ------------------------------------------------------------------------------------


def test_what_agrees_is_no_suspect_but_is_confirmed_when_looked_at_again() -> None:
    tables = MemoryTables(truths={MESSAGE_ID: (truth(),)}, rows={PROJECTION.name: {SLOT: row()}})
    assert look(CHANGED, tables=tables).suspects == ()
    again = replace(CHANGED_AGAIN, suspected=Kind.EXTRA_ROW, oldest=LONG_AGO)
    assert look(again, tables=tables).suspects == (
        Suspect(
            SLOT,
            frozenset({MESSAGE_ID}),
            None,
            PROJECTION.name,
            LONG_AGO,
            looked_again=True,
            suspected=Kind.EXTRA_ROW,
        ),
    )


@pytest.mark.parametrize(
    ("times", "oldest"),
    [((None, None), None), ((None, 5), 5), ((5, None), 5), ((5, 3), 3), ((3, 5), 3)],
)
def test_the_oldest_write_counts(times: tuple[Micros | None, ...], oldest: Micros | None) -> None:
    target = Target(SLOT)
    for at in times:
        target.add(replace(CHANGED, oldest=at), None)
    assert target.suspect(PROJECTION.name, None).oldest == oldest


def test_the_first_suspicion_of_each_projection_is_kept() -> None:
    target = Target(SLOT)
    target.add(replace(CHANGED_AGAIN, suspected=None), None)
    target.add(replace(CHANGED_AGAIN, suspected=Kind.EXTRA_ROW), MESSAGE_ID)
    target.add(replace(CHANGED_AGAIN, suspected=Kind.MISSING_ROW), None)
    target.add(replace(CHANGED_AGAIN, projection="unseen_uids"), None)
    assert target.suspect(PROJECTION.name, None).suspected is Kind.EXTRA_ROW
    assert target.suspect("unseen_uids", None).suspected is None
    assert target.suspect("unseen_uids", None).looked_again
    assert not target.suspect("deleted_uids", None).looked_again
    assert target.sources == {MESSAGE_ID}
    assert target.changes == 0


def test_a_slot_has_one_target() -> None:
    state = LookState()
    assert state.target(SLOT) is state.target(slot(7))
    assert state.target(SLOT) is not state.target(slot(8))
