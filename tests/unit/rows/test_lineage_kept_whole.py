"""What a look leaves in lineage, and what it lets go of: all of a message's entries or none."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.rows.memory import Entry
from reconcilers.words.model import Micros, Slot, Wake
from streaming.steps.look_state import LookState
from streaming.steps.record_lineage import LineageRecorder
from tests.builders.rows import FAMILY, LONG_AGO, MAILBOX, MESSAGE_ID, NOW, OTHER_ID
from tests.builders.slots import uid_of
from tests.fakes.checkpoints.memory import MemoryLineage

OTHER_MAILBOX = UUID("11111111-0000-1000-8000-00000000000f")


def entry(uid: int, messageid: UUID = MESSAGE_ID, mailboxid: UUID = MAILBOX) -> Entry:
    return Entry(messageid, Slot(mailboxid, uid), in_truth=True, recorded_at=LONG_AGO)


def holding(*entries: Entry) -> MemoryLineage:
    lineage = MemoryLineage()
    lineage.remember(entries)
    return lineage


def find_gone(lineage: MemoryLineage, *uids: int) -> None:
    """A look at these UIDs finds nothing on either side."""
    sight = LookState()
    slots = [Slot(MAILBOX, uid) for uid in uids]
    for slot in slots:
        sight.target(slot)
    sight.entries |= lineage.of_slots(slots)
    LineageRecorder(FAMILY, lineage, watched_since=1).rows([], sight, NOW)


def expiring(lineage: MemoryLineage, messageid: UUID = MESSAGE_ID) -> set[int]:
    entries = lineage.of_sources([messageid]).get(messageid, [])
    return {uid_of(each.slot) for each in entries if each.expiring}


def test_what_a_message_lost_is_remembered_while_another_of_its_uids_is_left() -> None:
    lineage = holding(entry(7), entry(8))
    find_gone(lineage, 7)
    assert expiring(lineage) == set()


def test_when_all_uids_are_gone_together_all_may_be_forgotten() -> None:
    lineage = holding(entry(7), entry(8))
    find_gone(lineage, 7, 8)
    assert expiring(lineage) == {7, 8}


def test_what_was_kept_for_another_uid_goes_with_it() -> None:
    lineage = holding(entry(7), entry(8))
    find_gone(lineage, 7)
    find_gone(lineage, 7, 8)
    assert expiring(lineage) == {7, 8}


def test_a_uid_that_is_being_forgotten_keeps_no_other() -> None:
    lineage = holding(entry(7), entry(8))
    lineage.expire([entry(8)])
    find_gone(lineage, 7)
    assert expiring(lineage) == {7, 8}


@pytest.mark.parametrize(
    "left",
    [entry(8, messageid=OTHER_ID), entry(8, mailboxid=OTHER_MAILBOX)],
    ids=["another message", "another mailbox"],
)
def test_only_the_same_message_in_the_same_mailbox_keeps_an_entry(left: Entry) -> None:
    lineage = holding(entry(7), left)
    find_gone(lineage, 7)
    assert expiring(lineage) == {7}
    assert expiring(lineage, OTHER_ID) == set()


def test_messages_that_are_gone_together_do_not_keep_each_other() -> None:
    lineage = holding(entry(7), entry(8, messageid=OTHER_ID), entry(9, messageid=OTHER_ID))
    find_gone(lineage, 7, 8)
    assert expiring(lineage) == {7}
    assert expiring(lineage, OTHER_ID) == set()


# --- deletes -------------------------------------------------------------------------------------

OF_TRUTH = Wake((MAILBOX, None), MESSAGE_ID, deleted_from="imapuidtable", deleted_at=LONG_AGO)
OF_PROJECTION = Wake((MAILBOX, 7), None, deleted_from="messageidtable", deleted_at=LONG_AGO)
OF_PARTITION = replace(OF_TRUTH, key=(None, None))


def hear_of(wake: Wake, lineage: MemoryLineage) -> set[Micros]:
    """The deletes that are remembered of UID 7 when a look has heard of one and found nothing."""
    sight = LookState()
    sight.remembered |= lineage.of_sources([MESSAGE_ID])
    recorder = LineageRecorder(FAMILY, lineage, watched_since=1)
    recorder.deletes([wake])
    recorder.partition_deletes([wake], sight)
    of_truth = lineage.truth_deletes(MESSAGE_ID, MAILBOX)
    seen = set(of_truth.ranges).union(*of_truth.by_slot.values())
    return seen | lineage.projection_deletes(Slot(MAILBOX, 7)).received


@pytest.mark.parametrize("wake", [OF_TRUTH, OF_PROJECTION, OF_PARTITION])
def test_a_delete_is_remembered_when_it_is_heard_of_and_not_when_it_comes_round(wake: Wake) -> None:
    assert hear_of(wake, holding(entry(7))) == {LONG_AGO}
    assert hear_of(replace(wake, looked_again=True), holding(entry(7))) == set()
