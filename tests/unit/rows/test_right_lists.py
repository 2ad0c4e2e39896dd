"""Steps 3 to 7 on fakes for the rows of lists (`aclv2`), whose truth are the events beside them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.no_lineage import NoLineage
from reconcilers.declared.raw import raw_shape
from reconcilers.declared.writes import AddToSet, DeleteRow, RemoveFromSet
from reconcilers.rows.finding import Action, State
from reconcilers.rows.undo import undo
from reconcilers.words.model import Kind, Row, Slot, Suspect, Wake, look_again
from streaming.monitoring.metrics import Metrics
from streaming.settings import Settings
from streaming.steps.look import LookResult
from streaming.steps.undo import RowUndo
from tests.builders.rights import (
    BOB,
    EVE,
    LISTED,
    SHARED,
    listed,
    listed_place,
    stored_event,
)
from tests.builders.rights_ground import Ground
from tests.builders.rows import DELAY, LONG_AGO, NOW, SECOND

OF_EVENT = Wake((SHARED, None), SHARED, LONG_AGO, from_truth=True)
"""What any event of a mailbox's list wakes."""
BROKEN = Row({"aggregateid": SHARED, "eventid": 8, "event": "{"}, {"event": LONG_AGO})
EVERY_NAME = {BOB: "lr", "$staff": "lr", "-eve": "l", "-$staff": "a", "anyone": "l", "owner": "x"}


def ground(*events: Row, **rows: str) -> Ground:
    there = {listed_place(name): listed(name, rights) for name, rights in rows.items()}
    return Ground({SHARED: events} if events else {}, there, family=LISTED)


def found(*looked: LookResult) -> dict[Slot, Kind | None]:
    return {each.slot: each.kind for one in looked for each in one.suspects}


def suspect(kind: Kind, name: str = BOB) -> Suspect:
    at = listed_place(name)
    return Suspect(at, frozenset({SHARED}), kind, LISTED.listing.name, LONG_AGO, suspected=kind)


# --- what is compared ----------------------------------------------------------------------------


def test_every_name_of_the_newest_event_has_a_row() -> None:
    scene = ground(stored_event(0, {}, EVERY_NAME))
    assert found(scene.look(OF_EVENT)) == {
        listed_place(name): Kind.MISSING_ROW for name in EVERY_NAME
    }


def test_an_event_leads_to_rows_that_no_event_has_named() -> None:
    """It names the mailbox, whose rows are one partition: they are read as a whole."""
    scene = ground(stored_event(0, {}, {"ana": "lr", "eve": "l"}), ana="rl", eve="lw", bob="l")
    assert found(scene.look(OF_EVENT)) == {
        listed_place("eve"): Kind.DIFFERING_CELLS,
        listed_place("bob"): Kind.EXTRA_ROW,
    }


def test_the_event_of_a_row_leads_to_the_events_of_its_mailbox() -> None:
    scene = ground(stored_event(0, {}, {"bob": "lr"}), bob="l")
    row = Wake((SHARED, "bob"), SHARED, LONG_AGO)
    assert found(scene.look(row)) == {listed_place("bob"): Kind.DIFFERING_CELLS}


def test_no_glance_passes_a_row_of_it() -> None:
    assert raw_shape(LISTED) is None


# --- what is written: never newer than C − D -----------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "kind", "wanted"),
    [
        ({}, Kind.MISSING_ROW, {AddToSet: frozenset("lr")}),
        (
            {BOB: "lw"},
            Kind.DIFFERING_CELLS,
            {RemoveFromSet: frozenset("w"), AddToSet: frozenset("r")},
        ),
    ],
)
def test_letters_are_added_and_removed_one_by_one(
    rows: Mapping[str, str], kind: Kind, wanted: Mapping[type, frozenset[str]]
) -> None:
    scene = ground(stored_event(0, {}, {BOB: "lr"}), **rows)
    (outcome,) = scene.settle(suspect(kind))
    assert outcome.action is Action.REPAIR
    assert {type(each): each.elements for each in scene.tables.applied} == wanted  # type: ignore[attr-defined]
    at = scene.now - DELAY if rows else LONG_AGO
    assert {each.at for each in scene.tables.applied} == {at}


def test_a_row_that_should_be_gone_is_deleted_as_of_a_delay_ago() -> None:
    scene = ground(stored_event(0, {}, {BOB: "l"}), stored_event(1, {BOB: "l"}, {}), **{BOB: "l"})
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPAIR
    assert scene.tables.applied == [DeleteRow(LISTED.listing, listed_place(), scene.now - DELAY)]


def test_a_row_that_no_event_names_waits_for_a_person() -> None:
    """James writes a row of a list after its event only, so an event was lost."""
    scene = ground(stored_event(0, {}, {EVE: "l"}), **{BOB: "l"})
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert (outcome.action, scene.finding.kind) == (Action.REPORT, Kind.ABSENT_WITHOUT_DELETE)
    assert scene.tables.applied == []


def test_the_rows_of_a_list_that_has_no_event_wait_for_a_person() -> None:
    scene = ground(**{BOB: "l"})
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert (outcome.action, scene.finding.kind) == (Action.REPORT, Kind.ABSENT_WITHOUT_DELETE)


def test_rows_that_differ_from_a_young_event_are_not_judged() -> None:
    scene = ground(stored_event(0, {}, {BOB: "lr"}, at=NOW), **{BOB: "l"})
    (outcome,) = scene.settle(suspect(Kind.DIFFERING_CELLS), after=DELAY - SECOND)
    assert outcome.action is Action.LOOK_AGAIN


@pytest.mark.parametrize(
    ("before", "kind"),
    [("", Kind.MISSING_ROW), ("lw", Kind.DIFFERING_CELLS), ("l", Kind.EXTRA_ROW)],
)
def test_a_repair_is_undone_unless_the_row_has_changed_since(before: str, kind: Kind) -> None:
    new = {} if kind is Kind.EXTRA_ROW else {BOB: "lr"}
    events = stored_event(0, {}, {BOB: "l"}), stored_event(1, {BOB: "l"}, new)
    scene = ground(*events, **({BOB: before} if before else {}))
    scene.settle(suspect(kind))
    after = listed(rights="lr") if new else None
    writes = undo((scene.finding,), after)
    assert not isinstance(writes, str)
    assert {each.at for each in writes} == {max(each.at for each in scene.tables.applied) + 1}
    assert isinstance(undo((scene.finding,), listed(rights="a")), str)


def test_a_list_that_has_changed_since_keeps_what_its_users_made_of_it() -> None:
    """Letters have no write time: taken and given again, they look as the repair left them."""
    scene = ground(stored_event(0, {}, {BOB: "lr"}), **{BOB: "lrw"})
    scene.settle(suspect(Kind.DIFFERING_CELLS))
    repair, scene.rows[listed_place()] = scene.finding, listed(rights="lr")
    undoing = RowUndo(
        LISTED, scene.tables, scene.journal, NoLineage(), lambda *_: None, lambda: scene.now
    )
    assert not isinstance(undoing.plan(repair), str)
    taken = stored_event(1, {BOB: "lr"}, {}, scene.now + SECOND)
    given = stored_event(2, {}, {BOB: "lr"}, scene.now + 2 * SECOND)
    scene.truths[SHARED] = (*scene.truths[SHARED], taken, given)
    refused = undoing.plan(repair)
    assert isinstance(refused, str)
    assert refused.startswith("its list has changed since the repair, at ")


# --- a list that cannot be read ------------------------------------------------------------------


def test_a_malformed_list_is_one_finding_however_often_it_is_looked_at() -> None:
    rows = {f"user{number}": "l" for number in range(200)}
    scene = ground(BROKEN, **rows)
    (one,) = scene.look(OF_EVENT).suspects
    assert one.slot == LISTED.whole_group(SHARED)
    scene.settle(one)
    assert (scene.finding.kind, scene.finding.state) == (Kind.UNREADABLE, State.REPORTED)
    again = look_again(one.slot, LISTED.listing.name)
    (still,) = (each for looked in scene.looks([again]) for each in looked.suspects)
    assert (still.slot, still.unreadable) == (one.slot, one.unreadable)


def test_once_it_can_be_read_all_rows_of_the_mailbox_are_compared() -> None:
    scene = ground(BROKEN, eve="l", ana="l")
    (one,) = scene.look(OF_EVENT).suspects
    scene.settle(one)
    scene.truths[SHARED] = (stored_event(0, {}, {"ana": "l"}),)
    again = look_again(one.slot, LISTED.listing.name)
    suspects = [each for looked in scene.looks([again]) for each in looked.suspects]
    assert {each.slot: each.kind for each in suspects} == {
        listed_place("eve"): Kind.EXTRA_ROW,
        one.slot: None,
    }
    scene.settle(suspects[-1])
    assert list(scene.journal.open_findings(LISTED)) == []


# --- when it is switched on ----------------------------------------------------------------------


@pytest.mark.parametrize("table", ["off", "eventstore", "aclv2", "acl"])
def test_lists_are_compared_only_with_the_event_store(table: str) -> None:
    names = [each.name for each in Settings(rights={"truth": table}).families()]
    assert (LISTED.name in names) is (table == "eventstore")
    assert ("rights" in names) is (table != "off")


def test_the_oldest_right_that_should_be_gone_counts_whichever_table_has_it() -> None:
    metrics = Metrics(CollectorRegistry())
    begin, read = metrics.stale_right.begin, metrics.registry.get_sample_value
    name = "reconciler_stale_right_age_seconds"
    begin("rights", 1_000_000)
    both = read(name)
    begin("right_lists", 500_000_000)
    assert (read(name) or 0) >= (both or 0)
    begin("rights", None)
    assert 0 < (read(name) or 0) < (both or 0)
    begin("right_lists", None)
    assert read(name) == 0
