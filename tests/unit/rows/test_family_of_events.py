"""Steps 3 to 7 on fakes for a family whose truth is derived: rights from the event store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.declared.raw import raw_shape
from reconcilers.declared.writes import DeleteRow, SetCells
from reconcilers.rows.confirm import judge
from reconcilers.rows.finding import Action, Finding
from reconcilers.rows.halves import MOST_UNREADABLE
from reconcilers.rows.seen import Seen
from reconcilers.words.key import slot_from_text, text_of
from reconcilers.words.model import Kind, Repair, Report, Row, Slot, Suspect, Wake
from streaming.steps.look import LookResult
from tests.builders.rights import (
    BOB,
    EVE,
    FROM_EVENTS,
    LISTING,
    SHARED,
    place,
    shown,
    stored_event,
)
from tests.builders.rights_ground import Ground
from tests.builders.rows import DELAY, LONG_AGO, MAILBOX, MOMENT, NOW

ANA = "ana"
UNREADABLE_LIST = FROM_EVENTS.known_part(None, SHARED)
BROKEN = Row({"aggregateid": SHARED, "eventid": 8, "event": "{"}, {"event": LONG_AGO})
OF_SOURCE = Wake((None, SHARED), SHARED, LONG_AGO, from_truth=True)
"""What any event of a mailbox's list wakes."""


def ground(*events: Row, rows: Mapping[Slot, Row] | None = None) -> Ground:
    return Ground({SHARED: events} if events else {}, dict(rows or {}), family=FROM_EVENTS)


def found(*looked: LookResult) -> dict[Slot, Kind | None]:
    return {each.slot: each.kind for one in looked for each in one.suspects}


# --- one read of the source, and all its users are compared --------------------------------------


def test_every_user_of_the_newest_list_is_compared() -> None:
    events = stored_event(0, {}, {BOB: "lr"}), stored_event(1, {BOB: "lr"}, {BOB: "lrw", EVE: "l"})
    scene = ground(*events, rows={place(BOB): shown(BOB, "lr")})
    assert found(scene.look(OF_SOURCE)) == {
        place(BOB): Kind.DIFFERING_CELLS,
        place(EVE): Kind.MISSING_ROW,
    }


def test_letters_in_another_order_are_equal() -> None:
    scene = ground(stored_event(0, {}, {BOB: "wrl"}), rows={place(BOB): shown(BOB, "lrw")})
    looked = scene.look(OF_SOURCE)
    assert (found(looked), looked.examined) == ({}, 1)


def test_a_user_who_has_lost_all_rights_is_compared() -> None:
    events = stored_event(0, {}, {BOB: "lr"}), stored_event(1, {BOB: "lr"}, {})
    scene = ground(*events, rows={place(BOB): shown(BOB, "lr")})
    assert found(scene.look(OF_SOURCE)) == {place(BOB): Kind.EXTRA_ROW}


def test_groups_and_negative_rights_have_no_row() -> None:
    scene = ground(stored_event(0, {}, {"$staff": "lr", "-eve": "l", "anyone": "l"}))
    looked = scene.look(OF_SOURCE)
    assert (found(looked), looked.examined) == ({}, 3)


def test_a_row_of_the_projection_names_its_source() -> None:
    scene = ground(stored_event(0, {}, {BOB: "lr"}), rows={place(BOB): shown(BOB, "l")})
    assert found(scene.look(Wake((BOB, SHARED), SHARED))) == {place(BOB): Kind.DIFFERING_CELLS}


# --- confirm, repair -----------------------------------------------------------------------------


def suspect(kind: Kind) -> Suspect:
    return Suspect(place(), frozenset({SHARED}), kind, LISTING.name, LONG_AGO, suspected=kind)


@pytest.mark.parametrize(
    ("rows", "kind"),
    [({}, Kind.MISSING_ROW), ({place(): shown(rights="a")}, Kind.DIFFERING_CELLS)],
)
def test_a_row_is_written_in_the_projection_s_form(rows: Mapping[Slot, Row], kind: Kind) -> None:
    scene = ground(stored_event(0, {}, {BOB: "wlr"}), rows=rows)
    (outcome,) = scene.settle(suspect(kind))
    assert outcome.action is Action.REPAIR
    (write,) = scene.tables.applied
    assert isinstance(write, SetCells)
    assert (write.slot, dict(write.cells)) == (place(), {"rights": "lrw"})
    assert write.at == LONG_AGO + (1 if rows else 0)


def test_a_right_that_should_be_gone_is_removed_because_its_list_says_so() -> None:
    events = stored_event(0, {}, {BOB: "lr"}), stored_event(1, {BOB: "lr"}, {EVE: "l"})
    scene = ground(*events, rows={place(): shown()})
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPAIR
    (write,) = scene.tables.applied
    assert isinstance(write, DeleteRow)
    assert (write.slot, write.at) == (place(), LONG_AGO)
    assert scene.finding.sentence == (
        f"user_rights: user {BOB} mailbox {SHARED} is not in the truth;"
        " its list was read, and gives it no place here"
    )


def test_what_a_list_says_of_a_row_rests_on_no_event_that_is_still_to_come() -> None:
    truths = FROM_EVENTS.truth.rows_of(SHARED, [stored_event(0, {BOB: "lr"}, {})])
    for stands in (truths, ()):
        seen = Seen(place(), shown(), stands, frozenset({SHARED}), suspected=Kind.EXTRA_ROW)
        verdict = judge(FROM_EVENTS, FROM_EVENTS.listing, seen, MOMENT)
        assert isinstance(verdict, Repair if stands else Report)
        if isinstance(verdict, Repair):
            assert not verdict.rests_on_memory


def test_a_list_that_was_changed_within_the_delay_is_not_judged() -> None:
    events = stored_event(0, {}, {BOB: "lr"}), stored_event(1, {BOB: "lr"}, {}, at=NOW)
    scene = ground(*events, rows={place(): shown()})
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW), after=DELAY - 1)
    assert outcome.action is Action.LOOK_AGAIN
    assert scene.tables.applied == []


# --- content that cannot be understood -----------------------------------------------------------


def findings(scene: Ground) -> dict[Slot, Finding]:
    return {each.slot: each for each in scene.journal.open_findings(FROM_EVENTS)}


def test_malformed_content_is_a_finding_of_its_own() -> None:
    scene = ground(BROKEN, rows={place(BOB): shown(BOB)})
    (one,) = scene.look(OF_SOURCE).suspects
    assert (one.slot, one.sources) == (UNREADABLE_LIST, frozenset([SHARED]))
    (outcome,) = scene.settle(one)
    assert outcome.action is Action.REPORT
    assert scene.finding.kind is Kind.UNREADABLE
    assert scene.finding.sentence == (
        f"user_rights: mailbox {SHARED} cannot be read, and is not judged:"
        f" eventstore: event 8 of {SHARED}: it is not JSON"
    )
    assert scene.tables.applied == []


def test_its_key_is_typed_like_any_other() -> None:
    text = text_of(UNREADABLE_LIST)
    assert text.isprintable()
    assert slot_from_text(FROM_EVENTS.key, text) == UNREADABLE_LIST


def test_each_malformed_list_has_its_own_finding() -> None:
    scene = ground(BROKEN)
    scene.truths[MAILBOX] = (BROKEN,)
    looked = scene.looks([OF_SOURCE, Wake((None, MAILBOX), MAILBOX), OF_SOURCE])
    assert set(found(*looked)) == {UNREADABLE_LIST, FROM_EVENTS.known_part(None, MAILBOX)}


def test_many_malformed_lists_disturb_no_other() -> None:
    bad = [UUID(int=0x1000 << 64 | 1 << 63 | number) for number in range(2 * MOST_UNREADABLE)]
    scene = ground(stored_event(0, {}, {BOB: "lr"}))
    scene.truths |= dict.fromkeys(bad, (BROKEN,))
    looked = scene.looks([Wake((None, each), each) for each in bad] + [OF_SOURCE])
    assert found(*looked) == {
        place(BOB): Kind.MISSING_ROW,
        **{FROM_EVENTS.known_part(None, each): None for each in bad},
    }


def test_nothing_is_judged_by_a_list_that_became_malformed_since_the_look() -> None:
    scene = ground(BROKEN, rows={place(): shown()})
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPORT
    assert scene.finding.kind is Kind.UNREADABLE
    assert scene.tables.applied == []


def test_the_finding_ends_when_the_list_can_be_read() -> None:
    scene = ground(BROKEN)
    (one,) = scene.look(OF_SOURCE).suspects
    scene.settle(one)
    scene.truths[SHARED] = (stored_event(0, {}, {BOB: "lr"}),)
    scene.rows[place(BOB)] = shown(BOB, "lr")
    again = scene.look(replace(one.wake(None), projection=LISTING.name))
    for each in again.suspects:
        scene.settle(each)
    assert findings(scene) == {}


def test_no_glance_passes_a_row_of_it() -> None:
    assert raw_shape(FROM_EVENTS) is None
