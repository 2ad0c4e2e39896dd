"""Steps 3 to 7 on fakes for a family whose truth is derived: rights from the event store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.raw import raw_shape
from reconcilers.declared.writes import DeleteRow, SetCells
from reconcilers.rows.confirm import judge
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import Action, Finding
from reconcilers.rows.halves import MOST_UNREADABLE
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import Misconfigured
from reconcilers.words.key import slot_from_text, text_of
from reconcilers.words.model import Kind, Repair, Report, Row, Slot, Suspect, Wake, look_again
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


def test_a_row_that_is_looked_at_again_names_its_list_by_its_key() -> None:
    """A repair that did not hold is found, and a list that cannot be read stays reported."""
    scene = ground(stored_event(0, {}, {BOB: "lr"}))
    again = look_again(place(BOB), LISTING.name)
    (one,) = scene.look(again).suspects
    assert (one.kind, one.sources) == (Kind.MISSING_ROW, frozenset([SHARED]))
    (outcome,) = scene.settle(replace(one, sources=frozenset()))
    assert outcome.action is Action.REPAIR

    broken = ground(BROKEN)
    (told,) = broken.look(OF_SOURCE).suspects
    broken.settle(told)
    (still,) = broken.look(look_again(UNREADABLE_LIST, LISTING.name)).suspects
    assert still.unreadable is not None


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


# --- no lineage: the read of a source decides ----------------------------------------------------

OTHERS = [stored_event(0, {}, {EVE: "l"})]


def test_a_row_that_its_list_never_named_is_removed_if_it_is_older_after_two_looks() -> None:
    """James wrote it before lists had events, and the write that should take it was lost."""
    scene = ground(*OTHERS, rows={place(): shown(at=LONG_AGO - 1)})
    (outcome,) = scene.settle(replace(suspect(Kind.EXTRA_ROW), suspected=None))
    assert outcome.action is Action.LOOK_AGAIN
    (again,) = scene.published
    assert (again.slot, again.suspected) == (place(), Kind.EXTRA_ROW)
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPAIR
    assert scene.finding.sentence.endswith("; its list was read, and does not name it")
    assert [type(write) for write in scene.tables.applied] == [DeleteRow]


def test_a_row_that_is_not_older_than_its_list_shows_that_the_list_lost_an_event() -> None:
    """It was restored on Wednesday, as it was on Monday: she shared on Tuesday."""
    monday = stored_event(0, {}, {EVE: "l"})
    scene = ground(monday, rows={place(): shown(at=LONG_AGO + 1)})
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert (outcome.action, scene.finding.kind) == (Action.REPORT, Kind.ABSENT_WITHOUT_DELETE)
    assert scene.finding.sentence == (
        "its list never named it, although the row is not older than the list: an event was lost,"
        " or the truth was restored from an older copy"
    )
    assert scene.tables.applied == []
    assert scene.journal.accept(accepted(scene.finding, scene.now))
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPAIR


def test_such_a_removal_waits_for_no_event() -> None:
    listing, asked = FROM_EVENTS.listing, frozenset([SHARED])
    at, kind = LONG_AGO + 1, Kind.EXTRA_ROW
    seen = Seen(place(), shown(), (), asked, suspected=kind, has_truth=True, truth_at=at)
    verdict = judge(FROM_EVENTS, listing, seen, replace(MOMENT, frontier=0))
    assert isinstance(verdict, Repair)
    assert not verdict.rests_on_memory


def test_rows_of_a_list_that_is_gone_as_a_whole_wait_for_a_person() -> None:
    scene = ground(rows={place(): shown()})
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPORT
    assert scene.finding.kind is Kind.ABSENT_WITHOUT_DELETE
    assert scene.finding.sentence.startswith("its list has no truth row at all: the truth was lost")
    assert scene.journal.accept(accepted(scene.finding, scene.now))
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPAIR


def test_only_a_family_whose_rows_name_their_source_needs_no_lineage() -> None:
    assert FROM_EVENTS.is_source_in_key
    assert not MESSAGE.is_source_in_key
    with pytest.raises(Misconfigured, match="family message needs lineage"):
        replace(MESSAGE, remembered=False)


lists = st.dictionaries(st.sampled_from([BOB, EVE, ANA, "$staff", "-eve"]), st.text("lrw"))
rows = st.dictionaries(st.sampled_from([BOB, EVE, ANA, "mallory"]), st.text("lrwx"))


@given(st.lists(lists, max_size=3), rows)
def test_rights_become_those_of_the_newest_list(
    history: list[dict[str, str]], stored: dict[str, str]
) -> None:
    """Whatever stood there before; nothing is removed where there is no list."""
    pairs = zip([{}, *history], history, strict=False)
    events = [stored_event(number, *both) for number, both in enumerate(pairs)]
    old = {place(user): shown(user, text, LONG_AGO - 1) for user, text in stored.items()}
    scene = ground(*events, rows=old)
    scene.converge(OF_SOURCE, *(Wake((user, SHARED), SHARED, LONG_AGO) for user in stored))
    newest = {name: set(text) for name, text in history[-1].items()} if history else {}
    expected = {name: text for name, text in newest.items() if text and name[0] not in "$-"}
    left = {slot.group: set(str(row.get("rights"))) for slot, row in scene.rows.items()}
    if history:
        assert left == expected
        assert findings(scene) == {}
    else:
        assert left == {user: set(text) for user, text in stored.items()}
        assert {each.kind for each in findings(scene).values()} <= {Kind.ABSENT_WITHOUT_DELETE}


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
