"""What one look knows of a slot, from what was read: who may claim it, and what is there."""

from __future__ import annotations

from uuid import UUID

import pytest

from reconcilers.rows.memory import NOTHING_REMEMBERED, Entry, Memory
from reconcilers.rows.seen import (
    Seen,
    SlotRows,
    claimants,
    is_one_sided,
    outlived_its_delete,
    seen_at,
)
from reconcilers.words.model import Kind, Micros, Row, Slot, Suspect
from tests.builders.rows import (
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    OTHER_ID,
    PROJECTION,
    SECOND,
    SLOT,
    row,
    truth,
)
from tests.builders.slots import slots, uid_of

THIRD_ID = UUID("44444444-0000-1000-8000-000000000004")
OTHER_MAILBOX = UUID("11111111-0000-1000-8000-00000000000f")
TOLERANCE = 10 * SECOND
HERE = truth()
SIBLING = truth(uid=8)
ELSEWHERE = truth(mailboxid=OTHER_MAILBOX)


def suspect(*messageids: UUID, suspected: Kind | None = None) -> Suspect:
    ids = frozenset(messageids)
    return Suspect(SLOT, ids, Kind.EXTRA_ROW, PROJECTION.name, suspected=suspected)


def test_a_look_that_read_one_side_only_has_asked_nobody() -> None:
    assert Seen(SLOT, None, ()) == Seen(
        SLOT,
        None,
        (),
        consulted=frozenset(),
        memory=NOTHING_REMEMBERED,
        present=frozenset(),
        suspected=None,
        listed=False,
    )


def read(actual: Row | None, *truths: Row, listed: Row | None = None) -> SlotRows:
    return SlotRows(actual, listed, frozenset({MESSAGE_ID}), truths)


def seen(rows: SlotRows, memory: Memory = NOTHING_REMEMBERED) -> Seen:
    return seen_at(FAMILY, suspect(MESSAGE_ID), rows, memory, TOLERANCE)


# --- claimants -----------------------------------------------------------------------------------


def test_nobody_may_claim_a_slot_of_which_nothing_is_known() -> None:
    assert claimants(FAMILY, suspect(), None, ()) == frozenset()


def test_whoever_events_the_row_and_memory_name_may_claim_it() -> None:
    remembered = [Entry(THIRD_ID, Slot(MAILBOX, uid_of(SLOT)), in_truth=True)]
    found = claimants(FAMILY, suspect(OTHER_ID), row(), remembered)
    assert found == {MESSAGE_ID, OTHER_ID, THIRD_ID}


def test_a_row_that_names_no_message_adds_none() -> None:
    assert claimants(FAMILY, suspect(OTHER_ID), row(messageid=None), ()) == {OTHER_ID}


# --- is_one_sided --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (read(None), False),
        (read(row(), HERE), False),
        (read(row()), True),
        (read(None, HERE), True),
        (read(row(), SIBLING), True),
        (read(row(), ELSEWHERE), True),
        (read(None, SIBLING, ELSEWHERE), False),
    ],
    ids=[
        "neither",
        "both",
        "projection only",
        "truth only",
        "the truth's row is of another uid",
        "the truth's row is in another mailbox",
        "other rows of the message",
    ],
)
def test_memory_is_asked_where_one_side_alone_has_the_row(rows: SlotRows, expected: bool) -> None:
    assert is_one_sided(FAMILY, SLOT, rows) is expected


# --- seen_at -------------------------------------------------------------------------------------


def test_only_rows_of_this_mailbox_and_uid_claim_it() -> None:
    one = seen(read(row(), HERE, SIBLING, ELSEWHERE))
    assert one.truths == (HERE,)
    assert one.present == slots(7, 8)


def test_what_was_read_asked_and_remembered_is_kept() -> None:
    memory = Memory(known=slots(7))
    rows = SlotRows(row(), row(), frozenset({MESSAGE_ID, OTHER_ID}), ())
    one = seen_at(FAMILY, suspect(suspected=Kind.EXTRA_ROW), rows, memory, TOLERANCE)
    assert (one.slot, one.actual, one.memory) == (SLOT, rows.actual, memory)
    assert (one.consulted, one.suspected) == (rows.claimants, Kind.EXTRA_ROW)


@pytest.mark.parametrize(("listed", "expected"), [(None, False), (row(), True)])
def test_an_index_is_told_whether_the_message_is_listed(listed: Row | None, expected: bool) -> None:
    assert seen(read(None, listed=listed)).listed is expected


def test_a_row_that_only_outlived_its_delete_is_not_present_but_claims_its_slot() -> None:
    memory = Memory(range_deletes=frozenset({LONG_AGO - SECOND}))
    one = seen(read(None, HERE, truth(uid=8, at=LONG_AGO + 3600 * SECOND)), memory)
    assert one.present == slots(8)
    assert one.truths == (HERE,)


def test_a_row_that_is_older_than_a_delete_accounts_for_one() -> None:
    """A truth that was restored has it again; it is there, as any other."""
    memory = Memory(range_deletes=frozenset({LONG_AGO - 3600 * SECOND, LONG_AGO + 3600 * SECOND}))
    one = seen(read(None, HERE, truth(uid=8, at=LONG_AGO + 7200 * SECOND)), memory)
    assert len(one.present) == 2
    assert list(one.memory.sibling_deletes.values()) == [{LONG_AGO + 3600 * SECOND}]


# --- outlived_its_delete -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("apart", "expected"),
    [
        (0, True),
        (TOLERANCE, True),
        (-TOLERANCE, True),
        (TOLERANCE + 1, False),
        (-TOLERANCE - 1, False),
    ],
)
def test_as_near_as_two_clocks_may_differ(apart: Micros, expected: bool) -> None:
    memory = Memory(range_deletes=frozenset({LONG_AGO + apart}))
    assert outlived_its_delete(HERE, memory, TOLERANCE) is expected


def test_a_delete_that_named_its_uid_or_was_of_the_projection_says_nothing_here() -> None:
    memory = Memory(row_deletes=frozenset({LONG_AGO}), projection_deletes=frozenset({LONG_AGO}))
    assert not outlived_its_delete(HERE, memory, TOLERANCE)


def test_one_cell_that_is_near_is_enough() -> None:
    memory = Memory(range_deletes=frozenset({LONG_AGO + 3600 * SECOND}))
    late = row(written={"flagseen": LONG_AGO + 3600 * SECOND + TOLERANCE})
    assert outlived_its_delete(late, memory, TOLERANCE)
