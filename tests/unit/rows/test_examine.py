"""Steps 5 to 7 on fakes: what becomes of a suspect, attempt after attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from reconcilers.counters.open_message import open_message
from reconcilers.declared.writes import SetCells, Write
from reconcilers.limits.gate import Admission
from reconcilers.rows.deletes import ProjectionDelete, TruthDelete
from reconcilers.rows.finding import Action, State
from reconcilers.rows.memory import Entry
from reconcilers.words.errors import Refused
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros, Row, Slot
from reconcilers.words.waiting import Wait, Waiting
from streaming.steps.outcome import Outcome
from streaming.steps.parking import REFUSES
from streaming.steps.recorder import LONGEST
from tests.builders import examining
from tests.builders.examining import Stream, became, kind_of, stream
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    OTHER_ID,
    PROJECTION,
    SECOND,
    SLOT,
    partial,
    row,
    truth,
)
from tests.contract.making import a_finding
from tests.fakes.memory_tables import MemoryTables

RULES = examining.RULES
TOO_MANY = Admission(repairs_wait=Waiting(Wait.BREAKER, "breaker repairs: too many"))


# --- what nobody can resolve ----------------------------------------------------------------------


def test_a_row_that_was_deleted_and_whose_message_nobody_knows_is_reported() -> None:
    one = stream()
    outcome = one.settle(Kind.UNRESOLVED, sources=frozenset())
    assert became(outcome) == (Action.REPORT, Kind.UNRESOLVED)
    assert "`reconcile sweep`" in one.open_finding.sentence


def test_of_an_orphan_that_two_messages_may_claim_the_counters_hear_of_both() -> None:
    """It names one, and another is remembered there: once that ended each batch with an error."""
    one = stream(actual=row(messageid=OTHER_ID))
    one.lineage.remember(KNOWN)
    outcome = one.settle(Kind.EXTRA_ROW, sources=frozenset())
    assert kind_of(outcome) is Kind.ABSENT_WITHOUT_DELETE
    message = open_message(one.open_finding)
    assert message is not None
    assert message.sources == {MESSAGE_ID, OTHER_ID}


# --- where all of the truth is remembered -------------------------------------------------------


def swept_stream(*, actual: Row | None = None) -> Stream:
    """All of the truth is remembered, and it has no message."""
    one = stream(actual=actual)
    one.lineage.watch_from(LONG_AGO)
    one.lineage.mark_swept(LONG_AGO + SECOND, LONG_AGO)
    return one


def test_where_the_whole_truth_is_remembered_a_row_of_no_message_is_removed() -> None:
    gone = swept_stream()
    assert gone.settle(Kind.UNRESOLVED, sources=frozenset()).finding is None
    assert gone.finding is None
    one = swept_stream(actual=partial(flagseen=True))
    outcome = one.settle(Kind.EXTRA_ROW, sources=frozenset())
    assert became(outcome) == (Action.REPAIR, Kind.EXTRA_ROW)
    assert len(one.tables.applied) == 1


def test_memory_that_began_after_the_sweep_is_not_all_of_the_truth() -> None:
    one = swept_stream(actual=partial(flagseen=True))
    one.lineage.watch_from(LONG_AGO + 2 * SECOND)
    outcome = one.settle(Kind.EXTRA_ROW, sources=frozenset())
    assert became(outcome) == (Action.REPORT, Kind.UNRESOLVED)


@pytest.mark.parametrize("place", [SLOT, FAMILY.whole_group(MAILBOX)], ids=["row", "mailbox"])
def test_nor_is_it_where_a_row_cannot_be_read(place: Slot) -> None:
    one = swept_stream(actual=partial(flagseen=True))
    unread = a_finding(FAMILY, place, kind=Kind.UNREADABLE, state=State.REPORTED, writes=())
    one.journal.put(unread)
    assert kind_of(one.settle(Kind.EXTRA_ROW, sources=frozenset())) is Kind.UNRESOLVED
    assert not one.tables.applied


def test_what_has_come_since_the_slice_was_admitted_is_not_known() -> None:
    """A slice of many suspects takes a while: what is confirmed last counts from its beginning."""
    one = swept_stream(actual=partial(flagseen=True, at=NOW - 2 * DELAY))
    admitted = Admission(frontier=NOW - 2 * DELAY)
    outcome = one.settle(Kind.EXTRA_ROW, admitted, sources=frozenset())
    assert outcome.action is Action.LOOK_AGAIN
    assert not one.tables.applied
    one.settle(Kind.EXTRA_ROW, replace(admitted, frontier=NOW), sources=frozenset())
    assert len(one.tables.applied) == 1


# --- what a person accepted stays accepted -------------------------------------------------------


def shadowed() -> Stream:
    """A truth row that outlived a delete by a second, of which the projection is rid."""
    one = stream(wanted=truth())
    one.lineage.remember_deletes([TruthDelete(MESSAGE_ID, (MAILBOX, None), LONG_AGO - SECOND)])
    return one


def test_a_row_that_outlived_its_delete_is_reported_and_not_written() -> None:
    one = shadowed()
    assert became(one.settle(Kind.MISSING_ROW)) == (Action.REPORT, Kind.SHADOWED_DELETE)
    assert one.settle(Kind.MISSING_ROW).action is Action.KEEP  # nobody has accepted it
    assert one.tables.applied == []


def test_an_accepted_repair_that_does_not_hold_is_tried_again_and_not_reported() -> None:
    one = shadowed()
    one.settle(Kind.MISSING_ROW)
    one.accept()
    for attempt in (1, 2, 3):
        assert became(one.settle(Kind.MISSING_ROW)) == (Action.REPAIR, Kind.MISSING_ROW)
        assert one.open_finding.attempts == attempt
        assert one.open_finding.accepted_kinds == {Kind.SHADOWED_DELETE}
    assert one.settle(Kind.MISSING_ROW).action is Action.STICK


KNOWN = [Entry(MESSAGE_ID, SLOT, True, LONG_AGO)]


def test_who_let_a_row_be_added_has_not_let_it_be_removed() -> None:
    one = shadowed()
    one.settle(Kind.MISSING_ROW)
    one.accept()
    assert one.settle(Kind.MISSING_ROW).action is Action.REPAIR
    one.lineage.remember(KNOWN)
    one.tables.truths.clear()
    one.tables.rows[PROJECTION.name] = {SLOT: row()}
    assert kind_of(one.settle(Kind.EXTRA_ROW)) is Kind.AMBIGUOUS_RANGE_DELETE
    assert SLOT in one.tables.rows[PROJECTION.name]
    assert Kind.AMBIGUOUS_RANGE_DELETE not in one.open_finding.accepted_kinds


def test_who_let_a_row_be_removed_has_not_let_it_be_added() -> None:
    one = stream(actual=row())
    one.lineage.remember(KNOWN)
    one.lineage.remember_deletes([TruthDelete(MESSAGE_ID, (MAILBOX, None), LONG_AGO - SECOND)])
    assert kind_of(one.settle(Kind.EXTRA_ROW)) is Kind.AMBIGUOUS_RANGE_DELETE
    one.accept()
    one.settle(Kind.EXTRA_ROW, Admission(repairs_wait=Waiting(Wait.PAUSE, "paused")))
    held = one.open_finding
    assert held.kind is Kind.EXTRA_ROW
    assert held.accepted_kinds == {Kind.AMBIGUOUS_RANGE_DELETE}
    one.tables.rows.clear()
    one.tables.truths[MESSAGE_ID] = (truth(),)
    assert kind_of(one.settle(Kind.MISSING_ROW)) is Kind.SHADOWED_DELETE
    assert one.tables.applied == []


# --- superseded by a user ------------------------------------------------------------------------


def written_to_since() -> Stream:
    """A cell was repaired, then a user wrote it once more, and it differs again."""
    one = stream(actual=row(flagseen=False), wanted=truth())
    assert one.settle(Kind.DIFFERING_CELLS).action is Action.REPAIR
    newer = row(flagseen=False, written={"flagseen": LONG_AGO + 5 * SECOND})
    one.tables.rows[PROJECTION.name][SLOT] = newer
    return one


def test_what_a_user_wrote_since_supersedes_the_repair_and_is_repaired_anew() -> None:
    one = written_to_since()
    outcome = one.settle(Kind.DIFFERING_CELLS)
    assert (outcome.action, one.ended) == (Action.REPAIR, [State.SUPERSEDED])
    finding = one.open_finding
    assert outcome.finding == finding
    assert (finding.attempts, finding.batch, finding.found_at) == (1, "batch 2", one.now)
    assert one.logged() == ["intended", "superseded", "intended"]
    expected = SetCells(PROJECTION, SLOT, LONG_AGO + 5 * SECOND + 1, {"flagseen": True})
    assert one.tables.applied[1:] == [expected]


def test_a_superseded_repair_ends_even_when_the_next_is_held() -> None:
    one = written_to_since()
    outcome = one.settle(Kind.DIFFERING_CELLS, TOO_MANY)
    assert (outcome.action, one.ended) == (Action.KEEP, [State.SUPERSEDED])
    assert one.open_finding.state is State.HELD
    assert one.finding == outcome.finding
    assert one.logged() == ["intended", "superseded", "held"]


# --- a table that refuses writes (more of it in test_parking.py) ---------------------------------


class RefusingTables(MemoryTables):
    """Nothing may be written."""

    def apply(self, writes: Sequence[Write]) -> None:
        raise Refused("no right to")


def test_a_refused_repair_leaves_no_finding_of_its_own_and_comes_back() -> None:
    one = stream(actual=row(flagseen=False), wanted=truth())
    one.tables = RefusingTables(one.tables.truths, one.tables.rows)
    outcome = one.settle(Kind.DIFFERING_CELLS)
    assert outcome == Outcome(
        SLOT, Action.LOOK_AGAIN, None, projection=PROJECTION.name, reason=REFUSES.why
    )
    assert one.finding is None
    assert [wake.suspected for wake in one.published] == [Kind.DIFFERING_CELLS]
    assert one.logged() == ["intended", "reported", "parked"]
    (parked,) = one.journal.open_findings(FAMILY)
    assert (parked.kind, parked.slot) == (Kind.TABLE_REFUSES, WHOLE_TABLE)


def test_a_superseded_repair_ends_as_such_even_when_the_next_is_refused() -> None:
    one = written_to_since()
    one.tables = RefusingTables(one.tables.truths, one.tables.rows)
    outcome = one.settle(Kind.DIFFERING_CELLS)
    assert (outcome.action, one.ended[0]) == (Action.LOOK_AGAIN, State.SUPERSEDED)
    assert one.logged()[:2] == ["intended", "superseded"]
    assert one.finding is None


# --- cells from the beginning of time ------------------------------------------------------------


@pytest.mark.parametrize("at", [0, -1])
def test_a_missing_row_whose_truth_has_no_usable_write_time_is_unguardable(at: Micros) -> None:
    one = stream(wanted=truth(at=at))
    first, second = (one.settle(Kind.MISSING_ROW) for _ in range(2))
    assert became(first) == (Action.REPORT, Kind.UNGUARDABLE)
    assert second.action is Action.KEEP
    assert one.tables.applied == []


def deleted_in_the_listing(*, at: Micros = LONG_AGO) -> Stream:
    """An orphan that was read in the truth once, and whose own delete was heard."""
    one = stream(actual=row(at=at))
    one.lineage.remember(KNOWN)
    one.lineage.remember_deletes([ProjectionDelete(SLOT, LONG_AGO)])
    return one


def test_an_extra_row_from_the_beginning_of_time_is_unguardable() -> None:
    one = deleted_in_the_listing(at=0)
    assert became(one.settle(Kind.EXTRA_ROW)) == (Action.REPORT, Kind.UNGUARDABLE)
    assert one.tables.applied == []


# --- a mailbox that has lost all its truth -------------------------------------------------------


def emptied() -> Stream:
    """An orphan with evidence, in a mailbox of ten rows of which none has its truth."""
    rows = {Slot(MAILBOX, uid): row(uid=uid) for uid in range(1, RULES.empty_truth_min_rows + 1)}
    one = Stream(MemoryTables(rows={PROJECTION.name: rows}))
    one.lineage.remember_deletes([ProjectionDelete(SLOT, LONG_AGO)])
    return one


def test_a_mailbox_without_truth_is_reported_once_and_loses_what_a_person_accepts() -> None:
    one = emptied()
    first, second = (one.settle(Kind.EXTRA_ROW) for _ in range(2))
    assert became(first) == (Action.REPORT, Kind.MAILBOX_WITHOUT_TRUTH)
    assert became(second) == (Action.KEEP, Kind.MAILBOX_WITHOUT_TRUTH)
    assert one.open_finding.sentence.endswith(
        "this mailbox has lost most of its truth, or of a part: held for a person"
    )
    assert one.logged() == ["reported"]
    assert one.tables.applied == []
    one.accept()
    assert one.settle(Kind.EXTRA_ROW).action is Action.REPAIR


@pytest.mark.parametrize(
    ("admission", "state", "ending"),
    [
        (
            Admission(removals_wait=Waiting(Wait.BREAKER, "breaker removals: 200")),
            State.HELD,
            "; held: breaker removals: 200",
        ),
        (
            Admission(repairs_wait=Waiting(Wait.CLOCKS, "clocks differ")),
            State.HELD,
            "; held: clocks differ",
        ),
        (Admission(observe=True), State.OBSERVED, "a delete of this very row was seen"),
    ],
)
def test_what_is_not_let_through_is_held_with_the_reason(
    admission: Admission, state: State, ending: str
) -> None:
    one = deleted_in_the_listing()
    one.settle(Kind.EXTRA_ROW, admission)
    finding = one.open_finding
    assert (finding.state, finding.kind) == (state, Kind.EXTRA_ROW)
    assert finding.told.endswith(ending)
    assert one.tables.applied == []


WAIT = Waiting(Wait.BEHIND, "the stream is behind: node n1 wrote 300 s ago what is not there yet")
BEHIND = Admission(memory_wait=WAIT)


def alone_lost() -> Stream:
    """Of a message all of whose rows are remembered, one was lost by the truth."""
    one = stream(actual=row())
    one.lineage.watch_from(LONG_AGO)
    one.lineage.mark_listed(LONG_AGO, LONG_AGO)
    one.lineage.remember([Entry(MESSAGE_ID, SLOT, True, LONG_AGO + 30 * SECOND)])
    one.lineage.remember_deletes(
        [TruthDelete(MESSAGE_ID, (MAILBOX, None), LONG_AGO + DELAY + SECOND)]
    )
    return one


def test_while_the_stream_is_behind_a_removal_on_memory_is_held_and_done_afterwards() -> None:
    one = alone_lost()
    one.settle(Kind.EXTRA_ROW, BEHIND)
    finding = one.open_finding
    assert (finding.state, finding.kind) == (State.HELD, Kind.EXTRA_ROW)
    assert finding.told.endswith(f"of the message was lost in this mailbox; held: {WAIT}")
    assert finding.next_look == one.now + RULES.recheck_interval
    assert one.tables.applied == []
    assert one.settle(Kind.EXTRA_ROW).action is Action.REPAIR
    assert one.logged() == ["held", "intended"]


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (deleted_in_the_listing(), Kind.EXTRA_ROW),
        (stream(wanted=truth()), Kind.MISSING_ROW),
        (stream(actual=row(flagseen=False), wanted=truth()), Kind.DIFFERING_CELLS),
    ],
    ids=["its own delete was heard", "missing", "differing"],
)
def test_while_the_stream_is_behind_what_does_not_rest_on_memory_is_repaired(
    one: Stream, kind: Kind
) -> None:
    assert became(one.settle(kind, BEHIND)) == (Action.REPAIR, kind)


def test_while_the_stream_is_behind_a_row_whose_own_delete_was_heard_is_not_re_added() -> None:
    one = stream(wanted=truth())
    one.lineage.remember_deletes([ProjectionDelete(SLOT, LONG_AGO)])
    one.settle(Kind.MISSING_ROW, BEHIND)
    assert (one.open_finding.state, one.open_finding.kind) == (State.HELD, Kind.MISSING_ROW)
    assert one.settle(Kind.MISSING_ROW).action is Action.REPAIR


def test_who_accepts_a_removal_while_the_stream_is_behind_accepts_no_later_doubt() -> None:
    one = alone_lost()
    one.settle(Kind.EXTRA_ROW, BEHIND)
    one.accept()
    other = Slot(MAILBOX, 8)
    one.lineage.remember([Entry(MESSAGE_ID, other, True, LONG_AGO + 30 * SECOND)])
    assert kind_of(one.settle(Kind.EXTRA_ROW)) is Kind.AMBIGUOUS_RANGE_DELETE
    assert one.tables.applied == []
    one.accept()
    assert became(one.settle(Kind.EXTRA_ROW, BEHIND)) == (Action.REPAIR, Kind.EXTRA_ROW)


def test_who_accepts_a_removal_while_the_stream_is_behind_does_not_wait_for_it() -> None:
    one = alone_lost()
    one.settle(Kind.EXTRA_ROW, BEHIND)
    one.accept()
    assert became(one.settle(Kind.EXTRA_ROW, BEHIND)) == (Action.REPAIR, Kind.EXTRA_ROW)


# --- what is looked at again ---------------------------------------------------------------------


def test_promise_6_a_repaired_key_comes_back_to_be_verified() -> None:
    """If it never comes back, it is due after four delays."""
    one = stream(actual=row(flagseen=False), wanted=truth())
    assert one.settle(Kind.DIFFERING_CELLS).action is Action.REPAIR
    (wake,) = one.published
    assert (wake.slot, wake.looked_again, wake.suspected) == (SLOT, True, Kind.DIFFERING_CELLS)
    assert one.open_finding.next_look == one.now + 4 * DELAY


def test_what_is_young_comes_back_with_what_was_found_and_says_why() -> None:
    one = stream(actual=row(flagseen=False, at=NOW + DELAY), wanted=truth())
    outcome = one.settle(Kind.DIFFERING_CELLS)
    assert (outcome.action, outcome.reason) == (
        Action.LOOK_AGAIN,
        "young: written within the delay",
    )
    assert [wake.suspected for wake in one.published] == [Kind.DIFFERING_CELLS]


# --- the agenda ----------------------------------------------------------------------------------


def test_a_slot_that_agrees_names_its_projection_to_the_agenda() -> None:
    outcome = stream(actual=row(), wanted=truth()).settle(Kind.DIFFERING_CELLS)
    assert outcome == Outcome(SLOT, Action.NOTHING, None, projection=PROJECTION.name)


def test_an_observer_leaves_a_repair_of_the_live_stream_alone() -> None:
    one = stream(actual=row(flagseen=False), wanted=truth())
    one.settle(Kind.DIFFERING_CELLS)
    before = one.open_finding
    outcome = one.settle(Kind.DIFFERING_CELLS, Admission(observe=True))
    assert outcome == Outcome(SLOT, Action.NOTHING, None)
    assert one.finding == before


# --- what is held between two attempts


def test_what_is_held_between_two_attempts_keeps_their_count() -> None:
    """Else it would be tried for ever, a breaker and an attempt by turns."""
    one = stream(wanted=truth())
    tried = []
    for _ in range(RULES.attempts.most):
        one.settle(Kind.MISSING_ROW)
        one.tables.rows.clear()  # it did not hold
        one.settle(Kind.MISSING_ROW, TOO_MANY)
        tried.append((one.open_finding.state, one.open_finding.attempts))
    assert tried[:-1] == [(State.HELD, 1), (State.HELD, 2)]
    assert tried[-1] == (State.STUCK, RULES.attempts.most)


def test_what_was_never_tried_is_held_without_a_write() -> None:
    one = stream(wanted=truth())
    one.settle(Kind.MISSING_ROW, TOO_MANY)
    finding = one.open_finding
    assert (finding.attempts, finding.writes, finding.tried_at) == (0, (), 0)


# --- what waits for a person: after as long again as it has waited, monthly at last ---------------

MONTH: Micros = 30 * 24 * 3600 * 1_000_000
OBSERVER = Admission(observe=True)


def looks_in(one: Stream, span: Micros, kind: Kind, admission: Admission) -> list[Micros]:
    """How long (µs) after the first look each of the others comes, within ``span``."""
    one.settle(kind, admission)
    began, came = one.now, list[Micros]()
    while one.finding is not None and one.finding.next_look is not None:
        if one.finding.next_look > began + span:
            break
        one.now = one.finding.next_look
        one.settle(kind, admission)
        came.append(one.now - began)
    return came


@pytest.mark.parametrize("admission", [examining.OPEN, OBSERVER])
def test_an_orphan_that_nobody_decides_on_is_looked_at_ever_less_often(
    admission: Admission,
) -> None:
    one = stream(actual=row())
    one.lineage.remember(KNOWN)
    came = looks_in(one, 8 * MONTH, Kind.EXTRA_ROW, admission)
    assert one.open_finding.kind is Kind.ABSENT_WITHOUT_DELETE
    assert came[0] >= RULES.recheck_interval
    assert 14 <= len(came) <= 20
    assert all(later - sooner <= MONTH + 2 * RULES.delay for sooner, later in pairwise(came))
    assert LONGEST == MONTH


@pytest.mark.parametrize(
    ("admission", "state", "span", "often"),
    [
        (OBSERVER, State.OBSERVED, 8 * MONTH, False),
        (TOO_MANY, State.HELD, 48 * RULES.recheck_interval, True),
    ],
    ids=["an observer would repair it", "a limit holds it"],
)
def test_a_missing_row_that_waits_is_looked_at_ever_less_often_unless_a_limit_holds_it(
    admission: Admission, state: State, span: Micros, *, often: bool
) -> None:
    one = stream(wanted=row())
    came = looks_in(one, span, Kind.MISSING_ROW, admission)
    assert one.open_finding.state is state
    assert len(came) > 40 if often else len(came) <= 20
