"""What follows from what was remembered: since when a lineage is complete, and of which deletes."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.rows.deletes import Deletes, RowDeletes, deletes_of
from reconcilers.rows.evidence import evidence_for_removal
from reconcilers.rows.memory import (
    NOTHING_REMEMBERED,
    Entry,
    Memory,
    Watching,
    believed_since,
    born_at,
    complete_at,
    group_is_whole,
    memory_of,
    merged,
)
from reconcilers.rows.seen import Seen
from reconcilers.words.model import KeyValue, Micros, Slot
from tests.builders.rows import FAMILY, MAILBOX, MESSAGE_ID, OTHER_MAILBOX, SLOT, row
from tests.builders.slots import slots
from tests.property.mail import time_uuid

BORN: Micros = 1_700_000_000_000_000
NO_DELETES = Deletes()


def entry(
    uid: int, recorded_at: Micros | None = None, mailboxid: UUID = MAILBOX, projected: str = ""
) -> Entry:
    return Entry(MESSAGE_ID, Slot(mailboxid, uid), not projected, recorded_at)


# --- born_at -------------------------------------------------------------------------------------


def test_a_time_based_message_tells_when_it_was_made() -> None:
    assert born_at(time_uuid(BORN, 1)) == BORN


@pytest.mark.parametrize("source", [uuid4(), "bob", 7], ids=["another UUID", "text", "number"])
def test_what_is_no_time_based_uuid_tells_nothing(source: KeyValue) -> None:
    assert born_at(source) is None


# --- complete_at ---------------------------------------------------------------------------------

OLD, YOUNG = time_uuid(BORN, 1), time_uuid(BORN + 1, 1)
TIMELESS = uuid4()
SINCE = Watching(BORN)
SWEPT = Watching(BORN, swept_at=BORN + 50)
COMPLETE_AT: dict[str, tuple[UUID, Watching | None, list[Micros | None], Micros | None]] = {
    "nobody watches": (OLD, None, [BORN + 50], None),
    "born while watching": (YOUNG, SINCE, [], 0),
    "born when watching began": (OLD, SINCE, [], None),
    "born before": (OLD, Watching(BORN + 1), [], None),
    "not time-based, nothing read": (TIMELESS, Watching(1), [], None),
    "read while watching": (TIMELESS, SINCE, [BORN + 50], BORN + 50),
    "read when watching began": (TIMELESS, SINCE, [BORN], BORN),
    "read before watching": (TIMELESS, SINCE, [BORN - 1], None),
    "known from an event only": (TIMELESS, SINCE, [None], None),
    "the earliest read counts": (TIMELESS, SINCE, [BORN + 9, BORN + 5], BORN + 5),
    "a read before watching does not": (TIMELESS, SINCE, [BORN - 9, BORN + 5], BORN + 5),
    "nothing read, swept": (TIMELESS, SWEPT, [], BORN + 50),
    "read before the sweep": (TIMELESS, SWEPT, [BORN + 20], BORN + 20),
    "read before watching, then swept": (TIMELESS, SWEPT, [BORN - 20], BORN + 50),
    "born while watching, then swept": (YOUNG, SWEPT, [], 0),
}
"""Which message it is, since when all is heard, when its rows were read, and what follows."""


@pytest.mark.parametrize(
    ("messageid", "watching", "read", "expected"), COMPLETE_AT.values(), ids=COMPLETE_AT.keys()
)
def test_since_when_a_memory_is_complete(
    messageid: UUID,
    watching: Watching | None,
    read: list[Micros | None],
    expected: Micros | None,
) -> None:
    here = [entry(uid, at) for uid, at in enumerate(read, 7)]
    assert complete_at(messageid, here, watching) == expected


# --- watching --------------------------------------------------------------------------------

DELAY: Micros = 45_000_000


@given(since=st.integers(0, 2**55), later=st.integers(0, 2 * DELAY))
def test_only_what_is_later_than_half_the_delay_is_believed(since: Micros, later: Micros) -> None:
    whole = group_is_whole(time_uuid(since + later, 1), Watching(since), DELAY)
    assert whole == (later > DELAY // 2)


@given(since=st.integers(0, 2**60), swept_at=st.integers(0, 2**60))
def test_a_sweep_from_before_the_beginning_makes_no_group_whole(
    since: Micros, swept_at: Micros
) -> None:
    watching = Watching(since, swept_at)
    assert group_is_whole(time_uuid(0, 1), watching, DELAY) == (swept_at >= since)
    assert group_is_whole(uuid4(), watching, DELAY) == (swept_at >= since)
    believed = watching.believed(DELAY)
    assert believed.swept_at in (None, swept_at + DELAY // 2)
    assert believed.since - since == DELAY // 2


@given(ahead=st.integers(0, DELAY // 2 - 1), before=st.integers(1, DELAY))
def test_a_delete_that_a_fast_clock_has_stamped_after_a_sweep_was_not_heard_by_whole_memory(
    ahead: Micros, before: Micros
) -> None:
    """A copy, then an expunge of what it was copied from, which takes both from the truth.

    Both really came before the sweep's mark. So the sweep read neither, and of the older row, from
    before memory began, nobody knows: the copy's user keeps it.
    """
    swept_at = BORN + 10 * DELAY
    expunged = swept_at - before + ahead
    watching = Watching(BORN, swept_at).believed(DELAY)
    deletes = Deletes(frozenset({expunged}))
    memory = memory_of(SLOT, MESSAGE_ID, [Entry(MESSAGE_ID, SLOT, True)], deletes, {}, watching)
    copied = row(at=expunged - 1)
    seen = Seen(SLOT, copied, (), consulted=frozenset({MESSAGE_ID}), memory=memory)
    assert evidence_for_removal(FAMILY, seen, DELAY) is None


def test_no_group_is_whole_while_nobody_watches() -> None:
    assert not group_is_whole(time_uuid(BORN, 1), None, DELAY)
    assert believed_since(None, DELAY) is None


def test_nothing_is_remembered_until_it_is_told() -> None:
    assert Memory() == Memory(
        known=frozenset(),
        unsure=frozenset(),
        complete_at=None,
        range_deletes=frozenset(),
        row_deletes=frozenset(),
        projection_deletes=frozenset(),
        sibling_deletes={},
    )
    assert Entry(MESSAGE_ID, SLOT, True) == Entry(
        MESSAGE_ID, SLOT, True, recorded_at=None, expiring=False
    )


# --- memory_of -----------------------------------------------------------------------------------


def test_a_message_of_which_nothing_is_known() -> None:
    assert memory_of(SLOT, MESSAGE_ID, [], NO_DELETES, {}, None) == Memory(unseen=True)


def test_what_only_the_projection_named_is_unsure() -> None:
    entries = [entry(7), entry(8, projected="only"), entry(9)]
    memory = memory_of(SLOT, MESSAGE_ID, entries, NO_DELETES, {}, None)
    assert memory.known == slots(7, 9)
    assert memory.unsure == slots(8)


def test_other_mailboxes_do_not_count() -> None:
    entries = [entry(7), entry(8, BORN, mailboxid=OTHER_MAILBOX)]
    memory = memory_of(SLOT, MESSAGE_ID, entries, NO_DELETES, {}, Watching(1))
    assert memory.known == slots(7)
    assert memory.complete_at is None


def test_truth_deletes_of_this_uid_of_the_whole_range_and_of_others() -> None:
    deletes = deletes_of(
        [(SLOT.key, 1), ((MAILBOX, None), 2), ((MAILBOX, None), 3), ((MAILBOX, 8), 4)]
    )
    memory = memory_of(SLOT, MESSAGE_ID, [], deletes, {}, None)
    assert memory.row_deletes == {1}
    assert memory.range_deletes == {2, 3}


def test_projection_deletes_of_this_row_and_those_of_its_siblings() -> None:
    other, third = Slot(MAILBOX, 8), Slot(MAILBOX, 9)
    deletes = {
        SLOT: RowDeletes(frozenset({1}), sent=9),
        other: RowDeletes(frozenset({2, 3}), sent=4),
        third: RowDeletes(),
    }
    memory = memory_of(SLOT, MESSAGE_ID, [], NO_DELETES, deletes, None)
    assert memory.projection_deletes == {1}
    assert memory.sibling_deletes == {other: {2, 3, 4}, third: set()}


@pytest.mark.parametrize(
    ("watching", "entries", "complete_at", "lost"),
    [
        (
            SINCE,
            [entry(7, BORN - 1), entry(8), entry(9, BORN + 5), entry(10)],
            BORN + 5,
            (7, 8, 10),
        ),
        (SINCE, [entry(7, BORN - 1), entry(8), entry(9, BORN - 1, projected="only")], None, (7,)),
        (None, [entry(7, BORN - 1), entry(8), entry(9, BORN - 1, projected="only")], None, (7,)),
        (SWEPT, [entry(7, BORN - 1), entry(8, BORN + 60)], BORN + 50, (7,)),
    ],
    ids=["told or read before", "not whole yet", "nobody watches", "before the sweep's mark"],
)
def test_what_no_read_since_has_found_may_have_been_lost_before_memory_was_whole(
    watching: Watching | None,
    entries: list[Entry],
    complete_at: Micros | None,
    lost: tuple[int, ...],
) -> None:
    """It may have been lost with others of which nobody knows."""
    memory = memory_of(SLOT, MESSAGE_ID, entries, NO_DELETES, {}, watching)
    assert (memory.complete_at, memory.lost_before) == (complete_at, slots(*lost))
    held = {each.slot for each in entries if each.in_truth} - memory.lost_before
    assert {each for each in slots(*range(7, 12)) if memory.holds(each)} == held


def test_of_a_message_born_while_watching_nothing_was_lost_before() -> None:
    entries = [Entry(YOUNG, SLOT, in_truth=True)]
    memory = memory_of(SLOT, YOUNG, entries, NO_DELETES, {}, SINCE)
    assert memory.complete_at == 0
    assert memory.holds(SLOT)


HALF = DELAY // 2


@pytest.mark.parametrize(
    ("message", "mailbox", "watching", "known_at"),
    [
        (time_uuid(BORN, 1), MAILBOX, None, None),
        (time_uuid(BORN, 1), MAILBOX, Watching(BORN), None),
        (time_uuid(BORN, 1), MAILBOX, Watching(BORN, swept_at=BORN + 50), None),
        (time_uuid(BORN, 1), MAILBOX, Watching(BORN, BORN, listed_at=BORN + 60), BORN + 60 + DELAY),
        (time_uuid(BORN, 1), MAILBOX, Watching(BORN + 70, BORN, listed_at=BORN + 60), None),
        (time_uuid(BORN + HALF + 1, 1), MAILBOX, Watching(BORN), 0),
        (time_uuid(BORN, 1), time_uuid(BORN + HALF + 1, 1), Watching(BORN), 0),
        (uuid4(), time_uuid(BORN, 1), Watching(BORN), None),
    ],
)
def test_since_when_the_rows_are_known_that_only_the_listing_had(
    message: UUID, mailbox: UUID, watching: Watching | None, known_at: Micros | None
) -> None:
    believed = watching and watching.believed(DELAY)
    memory = memory_of(Slot(mailbox, 7), message, [], NO_DELETES, {}, believed)
    assert memory.listing_known_at == known_at


# --- merged --------------------------------------------------------------------------------------


def test_no_message_is_no_memory_and_one_is_its_memory() -> None:
    assert merged(SLOT, []) == NOTHING_REMEMBERED
    alone = Memory(slots(7), slots(8), BORN, sibling_deletes={Slot(MAILBOX, 8): frozenset({1})})
    assert merged(SLOT, [alone]) == alone


def test_a_delete_of_before_a_read_is_not_the_rows_end() -> None:
    assert Memory(read={SLOT: 90}).ended(SLOT, 30) == 60
    assert Memory(had={SLOT: 100}, read={SLOT: 90}).ended(SLOT, 30) == 85
    assert Memory(had={SLOT: 100}, read={SLOT: 130}).ended(SLOT, 30) == 100


def test_of_two_reads_of_one_row_the_newest_counts() -> None:
    early, late = Memory(had={SLOT: 5}, read={SLOT: 3}), Memory(had={SLOT: 9}, read={SLOT: 4})
    for pair in ([early, late], [late, early]):
        together = merged(SLOT, pair)
        assert (together.had, together.read) == (late.had, late.read)


def test_one_message_that_contradicts_makes_no_memory_whole() -> None:
    whole, contradicted = Memory(slots(7), complete_at=0), Memory(complete_at=0)
    assert merged(Slot(MAILBOX, 7), [whole, contradicted]).complete_at == 0
    contradicted = replace(contradicted, range_deletes=frozenset({5}))
    assert contradicted.contradicted
    assert merged(Slot(MAILBOX, 7), [whole, contradicted]).complete_at is None


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [(5, 9, 9), (9, 5, 9), (0, 5, 5), (None, 5, None), (5, None, None), (None, None, None)],
)
def test_messages_together_are_complete_once_each_is(
    one: Micros | None, other: Micros | None, both: Micros | None
) -> None:
    assert merged(SLOT, [Memory(complete_at=one), Memory(complete_at=other)]).complete_at == both


def test_of_several_messages_one_that_holds_a_uid_is_enough() -> None:
    one, other = Memory(slots(7, 8), lost_before=slots(7, 8)), Memory(slots(8, 9))
    assert merged(SLOT, [one, other]).lost_before == slots(7)


def test_of_several_messages_all_uids_and_deletes_count() -> None:
    def told(known: int, unsure: int, number: int, **siblings: set[Micros]) -> Memory:
        by_slot = {Slot(MAILBOX, int(uid[1:])): frozenset(at) for uid, at in siblings.items()}
        return Memory(
            slots(known),
            slots(unsure),
            range_deletes=frozenset({10 + number}),
            row_deletes=frozenset({20 + number}),
            projection_deletes=frozenset({30 + number}),
            sibling_deletes=by_slot,
        )

    together = merged(SLOT, [told(7, 1, 0, _8={1}), told(9, 2, 1, _9={1, 2})])
    assert together == Memory(
        slots(7, 9),
        slots(1, 2),
        range_deletes=frozenset({10, 11}),
        row_deletes=frozenset({20}),  # of the one that the truth had here
        projection_deletes=frozenset({30, 31}),
        sibling_deletes={Slot(MAILBOX, 8): frozenset({1}), Slot(MAILBOX, 9): frozenset({1, 2})},
    )
