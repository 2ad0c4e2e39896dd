"""What a look leaves in lineage of the deletes and rows that it was told of and read.

And what it lets go of: all of a message's entries in a mailbox, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from checkpoints.lineage import Delete
from reconcilers.rows.deletes import ProjectionDelete, TruthDelete
from reconcilers.rows.memory import Entry
from reconcilers.words.model import EXPIRED, Micros, Row, Slot, Wake
from streaming.steps.look_state import LookState
from streaming.steps.record_lineage import LineageRecorder
from tests.builders.rows import (
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    OTHER_ID,
    OTHER_MAILBOX,
    SLOT,
    row,
    truth,
)
from tests.builders.slots import uid_of
from tests.fakes.checkpoints.memory import MemoryLineage

TRUTH, LIST = "imapuidtable", "messageidtable"
WATCHED_SINCE = LONG_AGO
THERE = Slot(MAILBOX, 8)


class WrittenLineage(MemoryLineage):
    """Takes down what is written to it: reading is free, writing is not."""

    def __init__(self) -> None:
        super().__init__()
        self.deletes: list[Delete] = []
        self.entries: list[Entry] = []
        self.calls: list[str] = []

    def remember_deletes(self, deletes: Iterable[Delete]) -> None:
        self.calls.append("remember_deletes")
        self.deletes += deletes

    def remember(self, entries: Iterable[Entry]) -> None:
        self.calls.append("remember")
        self.entries += entries

    def expire(self, entries: Iterable[Entry]) -> None:
        self.calls.append("expire")
        super().expire(entries)


def recorder(lineage: MemoryLineage, since: Micros | None = WATCHED_SINCE) -> LineageRecorder:
    return LineageRecorder(FAMILY, lineage, since)


def deleted(
    table: str | None,
    mailboxid: UUID | None = MAILBOX,
    messageid: UUID | None = MESSAGE_ID,
    uid: int | None = 7,
) -> Wake:
    from_truth = table == TRUTH
    key = (mailboxid, uid)
    return Wake(key, messageid, deleted_from=table, deleted_at=NOW, from_truth=from_truth)


def entry(
    uid: int = 7,
    at: Micros | None = LONG_AGO,
    *,
    messageid: UUID = MESSAGE_ID,
    mailboxid: UUID = MAILBOX,
) -> Entry:
    return Entry(messageid, Slot(mailboxid, uid), in_truth=True, recorded_at=at)


def remembered(*entries: Entry) -> LookState:
    state = LookState()
    state.remembered[MESSAGE_ID] = list(entries)
    return state


# --- deletes -------------------------------------------------------------------------------------


KEPT: dict[str, tuple[Wake, Delete]] = {
    "of a truth row": (deleted(TRUTH), TruthDelete(MESSAGE_ID, (MAILBOX, 7), NOW)),
    "of UID nought": (deleted(TRUTH, uid=0), TruthDelete(MESSAGE_ID, (MAILBOX, 0), NOW)),
    "of a message here": (
        deleted(TRUTH, uid=None),
        TruthDelete(MESSAGE_ID, (MAILBOX, None), NOW),
    ),
    "of a row of the list": (deleted(LIST, messageid=None), ProjectionDelete(SLOT, NOW)),
    "of one whose message is known": (deleted(LIST), ProjectionDelete(SLOT, NOW)),
}


@pytest.mark.parametrize(("wake", "kept"), KEPT.values(), ids=KEPT)
def test_a_delete_that_is_remembered(wake: Wake, kept: Delete) -> None:
    lineage = WrittenLineage()
    recorder(lineage).deletes([wake])
    assert lineage.deletes == [kept]


def test_the_deletes_of_a_look_are_sent_together() -> None:
    lineage = WrittenLineage()
    recorder(lineage).deletes([deleted(TRUTH), deleted(LIST, uid=8), deleted("messagedeleted")])
    assert lineage.calls == ["remember_deletes"]
    assert lineage.deletes == [
        TruthDelete(MESSAGE_ID, (MAILBOX, 7), NOW),
        ProjectionDelete(THERE, NOW),
    ]


WHOLE_MESSAGE = deleted(TRUTH, mailboxid=None, uid=None)
HAS_EXPIRED = replace(deleted(EXPIRED), looked_again=True)
IMPLIED: dict[str, Callable[[LineageRecorder, list[Wake], LookState], None]] = {
    "a whole message": LineageRecorder.partition_deletes,
    "a cell that has expired": LineageRecorder.implied_deletes,
}


@pytest.mark.parametrize(
    ("of", "wake", "entries", "lost"),
    [
        ("a whole message", WHOLE_MESSAGE, [entry(7), entry(8)], [7, 8]),
        ("a cell that has expired", HAS_EXPIRED, [entry()], [7]),
    ],
)
def test_each_row_that_is_gone_then_was_as_good_as_deleted(
    of: str, wake: Wake, entries: list[Entry], lost: list[int]
) -> None:
    lineage = WrittenLineage()
    IMPLIED[of](recorder(lineage), [wake], remembered(*entries))
    assert lineage.calls == ["remember_deletes"]
    assert lineage.deletes == [TruthDelete(MESSAGE_ID, (MAILBOX, uid), NOW) for uid in lost]


def test_a_row_that_was_made_again_since_or_lost_a_cell_only_is_not_lost() -> None:
    state = remembered(entry(7), entry(8))
    state.claims[SLOT] = [(MESSAGE_ID, truth())]
    state.claims[THERE] = [(OTHER_ID, truth(uid=8, messageid=OTHER_ID))]
    lineage = WrittenLineage()
    recorder(lineage).implied_deletes([HAS_EXPIRED], state)
    assert lineage.calls == []
    recorder(lineage).partition_deletes([WHOLE_MESSAGE], state)
    assert lineage.deletes == [TruthDelete(MESSAGE_ID, (MAILBOX, 8), NOW)]


NO_DELETE = {
    "a look again, of the truth": replace(deleted(TRUTH), looked_again=True),
    "a look again, of the list": replace(deleted(LIST), looked_again=True),
    "no delete": replace(deleted(TRUTH), deleted_at=None),
    "of a whole message": deleted(TRUTH, mailboxid=None),
    "of the truth, without a message": deleted(TRUTH, messageid=None),
    "of a whole mailbox's list": deleted(LIST, uid=None),
    "of an index": deleted("messagedeleted"),
    "of a table that is none of ours": deleted("messagecounter"),
    "of no table": deleted(None),
}
NOT_OF_A_MESSAGE = {
    "a look again": replace(WHOLE_MESSAGE, looked_again=True),
    "no delete": replace(WHOLE_MESSAGE, deleted_at=None),
    "of another table": replace(WHOLE_MESSAGE, deleted_from=LIST),
    "of one mailbox": replace(WHOLE_MESSAGE, key=(MAILBOX, None)),
    "without a message": replace(WHOLE_MESSAGE, source=None),
    "of which nothing is known": replace(WHOLE_MESSAGE, source=OTHER_ID),
}
NOT_EXPIRED = {
    "a delete that comes round": replace(HAS_EXPIRED, deleted_from=TRUTH),
    "without a message": replace(HAS_EXPIRED, source=None),
    "without a row": replace(HAS_EXPIRED, key=(MAILBOX, None)),
}


@pytest.mark.parametrize("wake", NO_DELETE.values(), ids=NO_DELETE.keys())
def test_a_delete_that_is_not_remembered(wake: Wake) -> None:
    lineage = WrittenLineage()
    recorder(lineage).deletes([wake])
    assert lineage.calls == []


@pytest.mark.parametrize(
    ("of", "wake"),
    [
        *(
            pytest.param("a whole message", wake, id=name)
            for name, wake in NOT_OF_A_MESSAGE.items()
        ),
        *(
            pytest.param("a cell that has expired", wake, id=name)
            for name, wake in NOT_EXPIRED.items()
        ),
    ],
)
def test_what_is_no_such_delete_takes_no_row(of: str, wake: Wake) -> None:
    lineage = WrittenLineage()
    IMPLIED[of](recorder(lineage), [wake], remembered(entry()))
    assert lineage.calls == []


# --- rows ----------------------------------------------------------------------------------------


def looked_at(*entries: Entry, listed: Row | None = None, claimed: Row | None = None) -> LookState:
    """A look at `SLOT`: what is remembered of it, and what the list and the truth have there."""
    state = LookState()
    state.target(SLOT)
    if listed is not None:
        state.rows[SLOT] = listed
    if claimed is not None:
        state.claims[SLOT] = [(MESSAGE_ID, claimed)]
    if entries:
        state.entries[SLOT] = list(entries)
    return state


def both(*entries: Entry) -> LookState:
    return looked_at(*entries, listed=row(), claimed=truth())


TOLD = Wake((MAILBOX, 7), MESSAGE_ID, from_truth=True)
TOLD_BY_LIST = replace(TOLD, from_truth=False)
READ_NOW = entry(at=NOW)
HAD_NOW = replace(READ_NOW, had_at=NOW)
"""Of a row that the listing lacks: it is to be added again, whatever became of its delete."""
ONLY_TOLD = entry(at=None)
PROJECTED = Entry(MESSAGE_ID, Slot(MAILBOX, 7), in_truth=False)
EXPIRING = replace(entry(), expiring=True)
LEFT_OVER = truth(internaldate=None)
"""What is left of a row after its delete: it counts as told, not as read."""
OUTLIVED = replace(entry(at=1), had_at=5)

SEEN: dict[str, tuple[LookState, list[Wake], list[Entry]]] = {
    "only listed": (looked_at(listed=row()), [], [PROJECTED]),
    "listed and told": (looked_at(listed=row()), [TOLD], [ONLY_TOLD]),
    "only told": (looked_at(), [TOLD], [ONLY_TOLD]),
    "only told, UID nought": (looked_at(), [replace(TOLD, key=(MAILBOX, 0))], [entry(0, None)]),
    # it may have come and gone within this look: its user has seen it, and may have deleted it
    "only told by the list": (looked_at(), [TOLD_BY_LIST], [PROJECTED]),
    "only in the truth": (looked_at(claimed=truth()), [], [HAD_NOW]),
    "only in the truth, read before": (
        looked_at(entry(), claimed=truth()),
        [],
        [replace(entry(), had_at=NOW)],
    ),
    "everywhere": (both(), [TOLD], [READ_NOW]),
    "nowhere": (looked_at(), [], []),
    "listed, and names no message": (looked_at(listed=row(messageid=None)), [], []),
    "listed, and known from there": (looked_at(PROJECTED, listed=row()), [], []),
    "told, now": (looked_at(PROJECTED, listed=row()), [TOLD], [ONLY_TOLD]),
    "told again": (looked_at(ONLY_TOLD), [TOLD], []),
    "told without a message": (looked_at(), [replace(TOLD, source=None)], []),
    "told without a mailbox": (looked_at(), [replace(TOLD, key=(None, 7))], []),
    "told without a UID": (looked_at(), [replace(TOLD, key=(MAILBOX, None))], []),
    "read, was listed only": (looked_at(PROJECTED, claimed=truth()), [], [HAD_NOW]),
    "read, was told only": (looked_at(ONLY_TOLD, claimed=truth()), [], [HAD_NOW]),
    "read before": (both(entry()), [], []),
    "read before watching began": (both(entry(at=WATCHED_SINCE - 1)), [], [READ_NOW]),
    "read before, and had outlived its delete": (both(OUTLIVED), [], [replace(READ_NOW, had_at=5)]),
    "was to be forgotten": (both(EXPIRING), [], [EXPIRING]),
    "another message was there": (
        looked_at(entry(messageid=OTHER_ID), claimed=truth()),
        [],
        [HAD_NOW],
    ),
    "left over": (looked_at(listed=row(), claimed=LEFT_OVER), [], [ONLY_TOLD]),
    "left over, and known": (looked_at(ONLY_TOLD, listed=row(), claimed=LEFT_OVER), [], []),
}
"""What a look has seen, which events have named rows, and what is written."""


@pytest.mark.parametrize(("state", "wakes", "written"), SEEN.values(), ids=SEEN.keys())
def test_a_row_is_written_where_it_is_not_known_yet(
    state: LookState, wakes: list[Wake], written: list[Entry]
) -> None:
    lineage = WrittenLineage()
    recorder(lineage).rows(wakes, state, NOW)
    assert lineage.entries == written
    assert ("remember" in lineage.calls) is bool(written)


@pytest.mark.parametrize("since", [None, 0])
def test_without_a_beginning_of_watching_what_was_read_is_kept(since: Micros | None) -> None:
    lineage = WrittenLineage()
    recorder(lineage, since).rows([], both(entry(at=1)), NOW)
    assert lineage.calls == []


@pytest.mark.parametrize("wakes", [[TOLD, TOLD_BY_LIST], [TOLD_BY_LIST, TOLD]])
def test_what_the_truth_told_of_a_row_counts_whatever_comes_first(wakes: list[Wake]) -> None:
    lineage = WrittenLineage()
    recorder(lineage).rows(wakes, looked_at(), NOW)
    assert lineage.entries[:1] == [ONLY_TOLD]


# --- rows that are gone --------------------------------------------------------------------------


def holding(*entries: Entry) -> WrittenLineage:
    lineage = WrittenLineage()
    MemoryLineage.remember(lineage, entries)
    return lineage


def expiring(lineage: MemoryLineage, messageid: UUID = MESSAGE_ID) -> set[int]:
    entries = lineage.of_sources([messageid]).get(messageid, [])
    return {uid_of(each.slot) for each in entries if each.expiring}


def find_gone(lineage: MemoryLineage, *uids: int) -> None:
    """A look at these UIDs finds nothing on either side."""
    sight = LookState()
    slots = [Slot(MAILBOX, uid) for uid in uids]
    for slot in slots:
        sight.target(slot)
    sight.entries |= lineage.of_slots(slots)
    recorder(lineage).rows([], sight, NOW)


def test_what_is_gone_on_both_sides_may_be_forgotten() -> None:
    lineage = holding(entry())
    find_gone(lineage, 7)
    assert lineage.calls == ["expire"]
    assert lineage.of_sources([MESSAGE_ID]) == {MESSAGE_ID: [EXPIRING]}


@pytest.mark.parametrize(
    ("looks", "forgotten"),
    [([[7]], set()), ([[7, 8]], {7, 8}), ([[7], [7, 8]], {7, 8})],
    ids=["another is left", "all together", "the other is gone later"],
)
def test_what_a_message_lost_is_remembered_while_another_of_its_uids_is_left(
    looks: list[list[int]], forgotten: set[int]
) -> None:
    lineage = holding(entry(7), entry(8))
    for uids in looks:
        find_gone(lineage, *uids)
    assert expiring(lineage) == forgotten


def test_a_uid_that_is_being_forgotten_keeps_no_other() -> None:
    lineage = holding(entry(7), entry(8))
    lineage.expire([entry(8)])
    find_gone(lineage, 7)
    assert expiring(lineage) == {7, 8}


@pytest.mark.parametrize(
    ("others", "gone"),
    [
        ([entry(8, messageid=OTHER_ID)], [7]),
        ([entry(8, mailboxid=OTHER_MAILBOX)], [7]),
        ([entry(8, messageid=OTHER_ID), entry(9, messageid=OTHER_ID)], [7, 8]),
    ],
    ids=["of another message", "in another mailbox", "of another message, gone together"],
)
def test_only_the_same_message_in_the_same_mailbox_keeps_an_entry(
    others: list[Entry], gone: list[int]
) -> None:
    lineage = holding(entry(7), *others)
    find_gone(lineage, *gone)
    assert expiring(lineage) == {7}
    assert expiring(lineage, OTHER_ID) == set()


@pytest.mark.parametrize(
    "state",
    [
        looked_at(entry(), listed=row()),
        looked_at(entry(), claimed=truth()),
        looked_at(EXPIRING),
        looked_at(),
    ],
    ids=["listed", "in the truth", "already to be forgotten", "never known"],
)
def test_what_is_there_or_is_forgotten_already_is_not_let_go(state: LookState) -> None:
    lineage = holding(entry())
    recorder(lineage).rows([], state, NOW)
    assert "expire" not in lineage.calls


def test_a_message_that_lost_the_row_to_another_one_may_be_forgotten_there() -> None:
    state = looked_at(entry(), entry(messageid=OTHER_ID))
    state.claims[SLOT] = [(OTHER_ID, truth(messageid=OTHER_ID))]
    lineage = holding(entry(), entry(messageid=OTHER_ID))
    recorder(lineage).rows([], state, NOW)
    assert lineage.of_sources([MESSAGE_ID]) == {MESSAGE_ID: [EXPIRING]}
    assert lineage.of_sources([OTHER_ID]) == {OTHER_ID: [entry(messageid=OTHER_ID)]}


def test_slots_that_nobody_asked_for_are_not_let_go() -> None:
    """Their list was not read: that they are not among its rows says nothing."""
    state = looked_at(entry(), listed=row())
    state.entries[THERE] = [entry(uid=8)]
    lineage = holding(entry(), entry(uid=8))
    recorder(lineage).rows([], state, NOW)
    assert "expire" not in lineage.calls
