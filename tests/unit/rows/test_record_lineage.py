"""What a look leaves in lineage of the deletes and rows that it was told of and read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from checkpoints.lineage import Delete
from reconcilers.rows.deletes import ProjectionDelete, TruthDelete
from reconcilers.rows.memory import Entry
from reconcilers.words.model import EXPIRED, Micros, Slot, Wake
from streaming.steps.look_state import LookState
from streaming.steps.record_lineage import LineageRecorder
from tests.builders.rows import (
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    OTHER_ID,
    SLOT,
    row,
    truth,
)
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


# --- deletes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wake", "kept"),
    [
        pytest.param(
            deleted(TRUTH), TruthDelete(MESSAGE_ID, (MAILBOX, 7), NOW), id="of a truth row"
        ),
        pytest.param(
            deleted(TRUTH, uid=0), TruthDelete(MESSAGE_ID, (MAILBOX, 0), NOW), id="of UID nought"
        ),
        pytest.param(
            deleted(TRUTH, uid=None),
            TruthDelete(MESSAGE_ID, (MAILBOX, None), NOW),
            id="of a message in a mailbox",
        ),
        pytest.param(
            deleted(LIST, messageid=None), ProjectionDelete(SLOT, NOW), id="of a row of the list"
        ),
        pytest.param(
            deleted(LIST), ProjectionDelete(SLOT, NOW), id="of a row of the list, its message known"
        ),
    ],
)
def test_a_delete_that_is_remembered(wake: Wake, kept: TruthDelete | ProjectionDelete) -> None:
    lineage = WrittenLineage()
    recorder(lineage).deletes([wake])
    assert lineage.deletes == [kept]


@pytest.mark.parametrize(
    "wake",
    [
        pytest.param(replace(deleted(TRUTH), looked_again=True), id="a look again, of the truth"),
        pytest.param(replace(deleted(LIST), looked_again=True), id="a look again, of the list"),
        pytest.param(replace(deleted(TRUTH), deleted_at=None), id="no delete"),
        pytest.param(deleted(TRUTH, mailboxid=None), id="of a whole message: see below"),
        pytest.param(deleted(TRUTH, messageid=None), id="of the truth, without a message"),
        pytest.param(deleted(LIST, uid=None), id="of a whole mailbox's list"),
        pytest.param(deleted("messagedeleted"), id="of an index"),
        pytest.param(deleted("messagecounter"), id="of a table that is none of ours"),
        pytest.param(deleted(None), id="of no table"),
    ],
)
def test_a_delete_that_is_not_remembered(wake: Wake) -> None:
    lineage = WrittenLineage()
    recorder(lineage).deletes([wake])
    assert lineage.calls == []


def test_the_deletes_of_a_look_are_sent_together() -> None:
    lineage = WrittenLineage()
    recorder(lineage).deletes([deleted(TRUTH), deleted(LIST, uid=8), deleted("messagedeleted")])
    assert lineage.calls == ["remember_deletes"]
    assert lineage.deletes == [
        TruthDelete(MESSAGE_ID, (MAILBOX, 7), NOW),
        ProjectionDelete(THERE, NOW),
    ]


# --- deletes of a whole message ------------------------------------------------------------------


def entry(uid: int = 7, messageid: UUID = MESSAGE_ID, at: Micros | None = LONG_AGO) -> Entry:
    return Entry(messageid, Slot(MAILBOX, uid), in_truth=True, recorded_at=at)


WHOLE_MESSAGE = deleted(TRUTH, mailboxid=None, uid=None)


def remembered(*entries: Entry) -> LookState:
    state = LookState()
    state.remembered[MESSAGE_ID] = list(entries)
    return state


def test_a_message_that_was_deleted_whole_has_lost_each_row_that_is_gone() -> None:
    lineage = WrittenLineage()
    recorder(lineage).partition_deletes([WHOLE_MESSAGE], remembered(entry(7), entry(8)))
    assert lineage.calls == ["remember_deletes"]
    assert lineage.deletes == [
        TruthDelete(MESSAGE_ID, (MAILBOX, 7), NOW),
        TruthDelete(MESSAGE_ID, (MAILBOX, 8), NOW),
    ]


def test_a_row_that_was_made_again_since_is_not_lost() -> None:
    state = remembered(entry(7), entry(8))
    state.claims[SLOT] = [(MESSAGE_ID, truth())]
    state.claims[THERE] = [(OTHER_ID, truth(uid=8, messageid=OTHER_ID))]
    lineage = WrittenLineage()
    recorder(lineage).partition_deletes([WHOLE_MESSAGE], state)
    assert lineage.deletes == [TruthDelete(MESSAGE_ID, (MAILBOX, 8), NOW)]


@pytest.mark.parametrize(
    "wake",
    [
        pytest.param(replace(WHOLE_MESSAGE, looked_again=True), id="a look again"),
        pytest.param(replace(WHOLE_MESSAGE, deleted_at=None), id="no delete"),
        pytest.param(replace(WHOLE_MESSAGE, deleted_from=LIST), id="of another table"),
        pytest.param(replace(WHOLE_MESSAGE, key=(MAILBOX, None)), id="of one mailbox: see above"),
        pytest.param(replace(WHOLE_MESSAGE, source=None), id="without a message"),
        pytest.param(replace(WHOLE_MESSAGE, source=OTHER_ID), id="of which nothing is known"),
    ],
)
def test_what_is_no_delete_of_a_whole_message_takes_no_row(wake: Wake) -> None:
    lineage = WrittenLineage()
    recorder(lineage).partition_deletes([wake], remembered(entry()))
    assert lineage.calls == []


# --- cells that have expired ---------------------------------------------------------------------

HAS_EXPIRED = replace(deleted(EXPIRED), looked_again=True)


def test_a_row_that_has_expired_and_is_gone_was_as_good_as_deleted() -> None:
    lineage = WrittenLineage()
    recorder(lineage).implied_deletes([HAS_EXPIRED], remembered(entry()))
    assert lineage.deletes == [TruthDelete(MESSAGE_ID, (MAILBOX, 7), NOW)]


@pytest.mark.parametrize(
    "wake",
    [
        pytest.param(replace(HAS_EXPIRED, deleted_from=TRUTH), id="a delete that comes round"),
        pytest.param(replace(HAS_EXPIRED, source=None), id="without a message"),
        pytest.param(replace(HAS_EXPIRED, key=(MAILBOX, None)), id="without a row"),
    ],
)
def test_what_has_not_expired_takes_no_row(wake: Wake) -> None:
    lineage = WrittenLineage()
    recorder(lineage).implied_deletes([wake], remembered(entry()))
    assert lineage.calls == []


def test_a_row_of_which_only_a_cell_has_expired_is_there() -> None:
    state, lineage = remembered(entry()), WrittenLineage()
    state.claims[SLOT] = [(MESSAGE_ID, truth())]
    recorder(lineage).implied_deletes([HAS_EXPIRED], state)
    assert lineage.calls == []


# --- rows ----------------------------------------------------------------------------------------


def looked_at(
    *,
    listed: bool = False,
    claimed: bool = False,
    entries: Iterable[Entry] = (),
) -> LookState:
    """A look at `SLOT`: what the list and the truth have there, and what is remembered of it."""
    state = LookState()
    state.target(SLOT)
    if listed:
        state.rows[SLOT] = row()
    if claimed:
        state.claims[SLOT] = [(MESSAGE_ID, truth())]
    if kept := list(entries):
        state.entries[SLOT] = kept
    return state


TOLD = Wake((MAILBOX, 7), MESSAGE_ID, from_truth=True)
READ_NOW = entry(at=NOW)
HAD_NOW = replace(READ_NOW, had_at=NOW)
"""Of a row that the listing lacks."""
ONLY_TOLD = entry(at=None)
PROJECTED = Entry(MESSAGE_ID, Slot(MAILBOX, 7), in_truth=False)
EXPIRING = replace(entry(), expiring=True)


@pytest.mark.parametrize(
    ("state", "wakes", "written"),
    [
        pytest.param(looked_at(listed=True), [], [PROJECTED], id="only listed"),
        pytest.param(looked_at(listed=True), [TOLD], [ONLY_TOLD], id="listed and told"),
        pytest.param(looked_at(), [TOLD], [ONLY_TOLD], id="only told"),
        pytest.param(looked_at(claimed=True), [], [HAD_NOW], id="only in the truth"),
        pytest.param(looked_at(listed=True, claimed=True), [TOLD], [READ_NOW], id="everywhere"),
        pytest.param(looked_at(), [], [], id="nowhere"),
        pytest.param(
            looked_at(listed=True, entries=[PROJECTED]), [], [], id="listed, and known from there"
        ),
        pytest.param(
            looked_at(listed=True, entries=[PROJECTED]), [TOLD], [ONLY_TOLD], id="told, now"
        ),
        pytest.param(looked_at(entries=[ONLY_TOLD]), [TOLD], [], id="told again"),
        pytest.param(
            looked_at(claimed=True, entries=[PROJECTED]), [], [HAD_NOW], id="read, was listed only"
        ),
        pytest.param(
            looked_at(claimed=True, entries=[ONLY_TOLD]), [], [HAD_NOW], id="read, was told only"
        ),
        pytest.param(
            looked_at(listed=True, claimed=True, entries=[entry()]), [], [], id="read before"
        ),
        pytest.param(
            looked_at(listed=True, claimed=True, entries=[entry(at=WATCHED_SINCE - 1)]),
            [],
            [READ_NOW],
            id="read before watching began",
        ),
        pytest.param(
            looked_at(listed=True, claimed=True, entries=[EXPIRING]),
            [],
            [EXPIRING],
            id="was to be forgotten",
        ),
        pytest.param(
            looked_at(claimed=True, entries=[replace(entry(), source=OTHER_ID)]),
            [],
            [HAD_NOW],
            id="another message was there",
        ),
    ],
)
def test_a_row_is_written_where_it_is_not_known_yet(
    state: LookState, wakes: list[Wake], written: list[Entry]
) -> None:
    lineage = WrittenLineage()
    recorder(lineage).rows(wakes, state, NOW)
    assert lineage.entries == written
    assert ("remember" in lineage.calls) is bool(written)


def test_of_a_row_that_the_listing_lacks_it_is_kept_when_the_truth_had_it() -> None:
    """It is to be added again, whatever became of its delete."""
    for before, kept in ((None, NOW - 5), (entry(), LONG_AGO)):
        lineage = WrittenLineage()
        entries = [] if before is None else [before]
        recorder(lineage).rows([], looked_at(claimed=True, entries=entries), NOW - 5)
        assert lineage.entries == [replace(entry(at=kept), had_at=NOW - 5)]
    lineage = WrittenLineage()
    recorder(lineage).rows([], looked_at(claimed=True, listed=True, entries=[entry()]), NOW)
    assert lineage.calls == []


def test_what_is_left_of_a_row_after_its_delete_counts_as_told_not_as_read() -> None:
    state = looked_at(listed=True)
    state.claims[SLOT] = [(MESSAGE_ID, truth(internaldate=None))]
    lineage = WrittenLineage()
    recorder(lineage).rows([], state, NOW)
    assert lineage.entries == [ONLY_TOLD]
    state.entries[SLOT] = [ONLY_TOLD]
    recorder(lineage).rows([], state, NOW)
    assert lineage.entries == [ONLY_TOLD], "nothing is written anew"


def test_an_older_read_of_a_row_that_outlived_its_delete_is_kept() -> None:
    lineage = WrittenLineage()
    before = replace(entry(at=1), had_at=5)
    recorder(lineage).rows([], looked_at(claimed=True, listed=True, entries=[before]), NOW)
    assert lineage.entries == [replace(entry(at=NOW), had_at=5)]


@pytest.mark.parametrize("since", [None, 0])
def test_without_a_beginning_of_watching_what_was_read_is_kept(since: Micros | None) -> None:
    lineage = WrittenLineage()
    state = looked_at(claimed=True, listed=True, entries=[entry(at=1)])
    recorder(lineage, since).rows([], state, NOW)
    assert lineage.calls == []


@pytest.mark.parametrize(
    "wake",
    [
        pytest.param(replace(TOLD, source=None), id="without a message"),
        pytest.param(replace(TOLD, key=(None, 7)), id="without a mailbox"),
        pytest.param(replace(TOLD, key=(MAILBOX, None)), id="without a UID"),
    ],
)
def test_an_event_that_names_no_row_tells_of_none(wake: Wake) -> None:
    lineage = WrittenLineage()
    recorder(lineage).rows([wake], looked_at(), NOW)
    assert lineage.calls == []


def test_an_event_of_the_listing_that_names_a_message_tells_of_a_row_that_is_not_sure() -> None:
    """It may have come and gone within this look: its user has seen it, and may have deleted it."""
    lineage = WrittenLineage()
    recorder(lineage).rows([replace(TOLD, from_truth=False)], looked_at(), NOW)
    assert lineage.entries == [replace(entry(at=None), in_truth=False)]


def test_what_the_truth_told_of_a_row_counts_whatever_comes_first() -> None:
    listed = replace(TOLD, from_truth=False)
    for wakes in ([TOLD, listed], [listed, TOLD]):
        lineage = WrittenLineage()
        recorder(lineage).rows(wakes, looked_at(), NOW)
        assert lineage.entries[:1] == [entry(at=None)]


def test_an_event_may_name_uid_nought() -> None:
    lineage = WrittenLineage()
    recorder(lineage).rows([replace(TOLD, key=(MAILBOX, 0))], looked_at(), NOW)
    assert lineage.entries == [entry(uid=0, at=None)]


def test_a_row_of_the_list_that_names_no_message_is_none() -> None:
    state = looked_at()
    state.rows[SLOT] = row(messageid=None)
    lineage = WrittenLineage()
    recorder(lineage).rows([], state, NOW)
    assert lineage.calls == []


# --- rows that are gone --------------------------------------------------------------------------


def holding(*entries: Entry) -> WrittenLineage:
    lineage = WrittenLineage()
    MemoryLineage.remember(lineage, entries)
    return lineage


def test_what_is_gone_on_both_sides_may_be_forgotten() -> None:
    lineage = holding(entry())
    recorder(lineage).rows([], looked_at(entries=[entry()]), NOW)
    assert lineage.calls == ["expire"]
    assert lineage.of_sources([MESSAGE_ID]) == {MESSAGE_ID: [EXPIRING]}


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(looked_at(listed=True, entries=[entry()]), id="listed"),
        pytest.param(looked_at(claimed=True, entries=[entry()]), id="in the truth"),
        pytest.param(looked_at(entries=[EXPIRING]), id="already to be forgotten"),
        pytest.param(looked_at(), id="never known"),
    ],
)
def test_what_is_there_or_is_forgotten_already_is_not_let_go(state: LookState) -> None:
    lineage = holding(entry())
    recorder(lineage).rows([], state, NOW)
    assert "expire" not in lineage.calls


def test_a_message_that_lost_the_row_to_another_one_may_be_forgotten_there() -> None:
    state = looked_at(entries=[entry(), entry(messageid=OTHER_ID)])
    state.claims[SLOT] = [(OTHER_ID, truth(messageid=OTHER_ID))]
    lineage = holding(entry(), entry(messageid=OTHER_ID))
    recorder(lineage).rows([], state, NOW)
    assert lineage.of_sources([MESSAGE_ID]) == {MESSAGE_ID: [EXPIRING]}
    assert lineage.of_sources([OTHER_ID]) == {OTHER_ID: [entry(messageid=OTHER_ID)]}


def test_slots_that_nobody_asked_for_are_not_let_go() -> None:
    """Their list was not read: that they are not among its rows says nothing."""
    state = looked_at(listed=True, entries=[entry()])
    state.entries[THERE] = [entry(uid=8)]
    lineage = holding(entry(), entry(uid=8))
    recorder(lineage).rows([], state, NOW)
    assert "expire" not in lineage.calls
