"""Users with many shared mailboxes: what one of their lists cannot tell holds up no other."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.rows.finding import Action, State
from reconcilers.words.model import Kind, Row, Slot, Suspect
from tests.builders.rights import BOB, EVE, FROM_EVENTS, LISTING, place, shown, stored_event
from tests.builders.rights_ground import Ground
from tests.builders.rows import LONG_AGO

BROKEN = Row({"aggregateid": place().key[1], "eventid": 8, "event": "{"}, {"event": LONG_AGO})
MIN_ROWS = 10


def mailbox(number: int) -> UUID:
    """One whose id is a time UUID."""
    return UUID(int=number << 96 | 0x1000_8000_000000000000)


def of_bob(mailboxes: int, *, lists: int) -> Ground:
    """Bob's rows in so many mailboxes; the first ``lists`` of them name him, the others nobody."""
    scene = Ground(family=FROM_EVENTS)
    for number in range(mailboxes):
        each = mailbox(number)
        named = {BOB: "lr"} if number < lists else {EVE: "l"}
        scene.rows[place(BOB, each)] = _row(shown(BOB, at=LONG_AGO - 1), each)
        scene.truths[each] = (stored_event(0, {}, named),)
    return scene


def _row(row: Row, each: UUID) -> Row:
    return replace(row, cells={**row.cells, "mailboxid": each})


def removed(scene: Ground, slot: Slot) -> Action:
    sources = frozenset({slot.key[1]})
    kind = Kind.EXTRA_ROW
    suspect = Suspect(slot, sources, kind, LISTING.name, LONG_AGO, suspected=kind)
    (outcome,) = scene.settle(suspect)
    return outcome.action


@pytest.mark.parametrize("malformed", [1, 5])
def test_a_malformed_list_holds_up_no_removal_of_another_mailbox(malformed: int) -> None:
    scene = of_bob(2 * MIN_ROWS, lists=2 * MIN_ROWS - 1)
    for number in range(malformed):
        scene.truths[mailbox(number)] = (BROKEN,)
    last = place(BOB, mailbox(2 * MIN_ROWS - 1))
    assert removed(scene, last) is Action.REPAIR
    assert [each.slot for each in scene.tables.applied] == [last]


@pytest.mark.parametrize("lists", [0, MIN_ROWS // 2])
def test_malformed_lists_are_no_evidence_that_the_others_are_whole(lists: int) -> None:
    scene = of_bob(4 * MIN_ROWS, lists=lists)
    for number in range(MIN_ROWS):
        scene.rows[place(BOB, mailbox(100 + number))] = _row(shown(BOB), mailbox(100 + number))
        scene.truths[mailbox(100 + number)] = (BROKEN,)
    assert removed(scene, place(BOB, mailbox(4 * MIN_ROWS - 1))) is not Action.REPAIR
    assert scene.tables.applied == []
    assert scene.finding.state in {State.HELD, State.REPORTED}
