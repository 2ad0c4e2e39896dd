"""The life of a finding: found, repaired, seen to hold, or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Sum
from reconcilers.declared.writes import (
    AddToCounter,
    AddToSet,
    DeleteRow,
    RemoveFromSet,
    SetCells,
    Write,
)
from reconcilers.rows.decision import accepted, retried
from reconcilers.rows.finding import (
    Action,
    Attempts,
    Finding,
    Now,
    State,
    Step,
    advance,
    newer_than_ours,
)
from reconcilers.rows.seen import Seen
from reconcilers.words.model import (
    Consistent,
    Difference,
    Kind,
    LookAgain,
    Repair,
    Report,
    Row,
    Verdict,
)
from tests.builders.findings import OURS, SET_FLAGSEEN, acceptance, finding
from tests.builders.indexes import APPLICABLE, gathered
from tests.builders.rows import LONG_AGO, MAILBOX, NOW, PROJECTION, SLOT, row, seen, truth

FLAGSEEN = Difference(Kind.DIFFERING_CELLS, ("flagseen",))
DIFFERS = Repair(FLAGSEEN, "differs in flagseen")
MISSING = Repair(Difference(Kind.MISSING_ROW), "is missing")
EXTRA = Repair(Difference(Kind.EXTRA_ROW), "is not in the truth")
FILLED = SetCells(PROJECTION, SLOT, OURS, {"messageid": None})
REMOVED = DeleteRow(PROJECTION, SLOT, OURS)


def step(
    previous: Finding | None,
    verdict: Verdict,
    one: Seen | None = None,
    batch: str = "batch 2",
    apart: int = 0,
) -> Step:
    shown = one if one is not None else seen(row(at=LONG_AGO, flagseen=False), truth())
    return advance(previous, verdict, shown, Now(batch, NOW), Attempts(most=3, apart=apart))


# --- what it is when nothing more is told --------------------------------------------------------


def test_a_finding_is_new_until_more_is_told_of_it() -> None:
    told = ("message", "messages", SLOT, None, Kind.EXTRA_ROW, State.HELD, "is extra", NOW)
    assert Finding(*told) == Finding(
        *told,
        oldest=None,
        attempts=0,
        batch="",
        tried_at=0,
        before=None,
        writes=(),
        next_look=None,
        accepted=frozenset(),
        truth=(),
    )


def test_a_step_is_the_first_attempt_and_ends_nothing() -> None:
    assert Step(Action.KEEP) == Step(Action.KEEP, attempt=0, ends_as=None, reason="")


def test_without_rows_it_is_the_same_but_for_them() -> None:
    whole = finding(
        before=row(), truth=(truth(),), accepted=acceptance(Kind.EXTRA_ROW), next_look=NOW
    )
    assert whole.without_rows() == replace(whole, before=None, writes=(), truth=())


# --- both sides agree ----------------------------------------------------------------------------


def test_agreement_without_a_finding_is_nothing() -> None:
    assert step(None, Consistent()) == Step(Action.NOTHING)


CLOSED = {each: Step(Action.CLOSE, ends_as=each) for each in (State.VERIFIED, State.HEALED)}
MUST_HOLD = Step(Action.LOOK_AGAIN, reason="its repair must hold for a delay")


@pytest.mark.parametrize("batch", ["batch 1", "batch 2"])
@pytest.mark.parametrize(("since", "expected"), [(29, MUST_HOLD), (30, CLOSED[State.VERIFIED])])
@pytest.mark.parametrize("state", [State.INTENDED, State.STUCK])
def test_promise_6_a_repair_is_verified_by_a_look_a_delay_after_the_write(
    state: State, since: int, expected: Step, batch: str
) -> None:
    """Time tells, not names: a slice that is executed again has the same name.

    Two slices of a batch have two names, seconds apart.
    """
    tried = finding(state, tried_at=NOW - since)
    assert step(tried, Consistent(), seen(row(), truth()), batch, apart=30) == expected


@pytest.mark.parametrize("batch", ["batch 1", "batch 2"])
@pytest.mark.parametrize(
    ("state", "writes"),
    [
        *((state, ()) for state in (State.INTENDED, State.STUCK)),
        *(
            (state, writes)
            for state in (State.REPORTED, State.HELD, State.OBSERVED)
            for writes in ((), (SET_FLAGSEEN,))
        ),
    ],
    ids=lambda each: "given up" if each else "never written" if each == () else None,
)
def test_what_we_did_not_write_or_gave_up_has_healed_at_once(
    state: State, writes: tuple[Write, ...], batch: str
) -> None:
    previous = finding(state, writes=writes, tried_at=NOW)
    assert step(previous, Consistent(), batch=batch, apart=30) == CLOSED[State.HEALED]


# --- not judged, or reported ---------------------------------------------------------------------


@pytest.mark.parametrize("previous", [None, finding()], ids=["no finding", "intended"])
def test_what_is_young_is_looked_at_again_and_changes_nothing(previous: Finding | None) -> None:
    assert step(previous, LookAgain(FLAGSEEN, "young")) == Step(Action.LOOK_AGAIN, reason="young")


REPORT = Report(Kind.DUPLICATE_UID, "two messages claim it")


def test_a_reported_class_is_reported_once() -> None:
    before = finding(State.REPORTED, kind=Kind.DUPLICATE_UID, writes=())
    assert step(None, REPORT) == Step(Action.REPORT)
    assert step(before, REPORT) == Step(Action.KEEP)


@pytest.mark.parametrize(
    "previous",
    [
        finding(State.REPORTED, kind=Kind.INCOMPLETE_TRUTH_ROW, writes=()),
        finding(State.INTENDED),
        finding(State.HELD, kind=Kind.DUPLICATE_UID, writes=()),
        finding(State.OBSERVED, kind=Kind.DUPLICATE_UID, writes=()),
    ],
    ids=["another class", "a repair", "the same class, retried", "the same class, observed"],
)
def test_another_class_or_state_than_before_is_reported_anew(previous: Finding) -> None:
    assert step(previous, REPORT) == Step(Action.REPORT)


@pytest.mark.parametrize("state", [State.INTENDED, State.STUCK, State.HELD, State.REPORTED])
def test_a_row_that_cannot_be_read_says_nothing_of_a_repair_that_was_tried(state: State) -> None:
    unread = step(finding(state), Report(Kind.UNREADABLE, "cannot be read"), seen(None))
    tried = state in {State.INTENDED, State.STUCK}
    assert unread.action is (Action.KEEP if tried else Action.REPORT)


def reported_after(previous: Finding, actual: Row | None, kind: Kind = Kind.DUPLICATE_UID) -> Step:
    return step(previous, Report(kind, "for a person"), seen(actual, truth()))


@pytest.mark.parametrize(("at", "newer"), [(OURS, False), (OURS + 1, True)])
@pytest.mark.parametrize("state", [State.INTENDED, State.STUCK, State.HELD])
def test_a_report_on_a_row_that_is_newer_than_our_write_ends_its_finding(
    state: State, at: int, newer: bool
) -> None:
    answer = reported_after(finding(state), row(written={"modseq": at}))
    assert answer == Step(Action.REPORT, ends_as=State.SUPERSEDED if newer else None)


def test_what_the_row_had_before_our_write_is_not_newer() -> None:
    before = row(written={"modseq": OURS + 5})
    assert reported_after(finding(before=before), before) == Step(Action.REPORT)


def test_a_report_after_a_removal_that_held_ends_its_finding() -> None:
    removal = finding(kind=Kind.EXTRA_ROW, writes=(REMOVED,), before=row())
    assert reported_after(removal, None) == Step(Action.REPORT, ends_as=State.SUPERSEDED)
    assert reported_after(removal, row()) == Step(Action.REPORT)
    assert reported_after(removal, None, Kind.UNREADABLE) == Step(Action.KEEP)
    held = replace(removal, state=State.HELD)
    assert reported_after(held, None, Kind.UNREADABLE) == Step(Action.REPORT)
    added = finding(kind=Kind.MISSING_ROW, writes=(FILLED,))
    assert reported_after(added, None) == Step(Action.REPORT)


# --- differs -------------------------------------------------------------------------------------


def test_a_new_difference_is_repaired_at_attempt_0() -> None:
    assert step(None, DIFFERS) == Step(Action.REPAIR, attempt=0)


@pytest.mark.parametrize("state", [State.HELD, State.OBSERVED, State.REPORTED])
def test_what_was_only_looked_at_is_repaired_at_attempt_0(state: State) -> None:
    assert step(finding(state, writes=(), attempts=0), DIFFERS) == Step(Action.REPAIR, attempt=0)


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_repair_that_did_not_hold_is_tried_again(attempts: int) -> None:
    answer = step(finding(attempts=attempts), DIFFERS)
    assert answer == Step(Action.REPAIR, attempt=attempts)


@pytest.mark.parametrize(("since", "attempted"), [(29, False), (30, True), (31, True)])
def test_looks_closer_together_than_attempts_may_be_are_none(since: int, attempted: bool) -> None:
    answer = step(finding(tried_at=NOW - since), DIFFERS, apart=30)
    too_soon = Step(Action.LOOK_AGAIN, reason="its repair was tried less than a delay ago")
    assert answer == (Step(Action.REPAIR, attempt=1) if attempted else too_soon)


def test_after_the_last_attempt_it_is_stuck_and_stays_so() -> None:
    assert step(finding(attempts=3), DIFFERS) == Step(Action.STICK, attempt=3)
    assert step(finding(State.STUCK, attempts=3), DIFFERS) == Step(Action.KEEP)


@pytest.mark.parametrize(("attempts", "again"), [(0, 0), (1, 0), (2, 1), (3, 2)])
def test_a_batch_that_is_executed_again_is_not_another_attempt(attempts: int, again: int) -> None:
    repeated = step(finding(attempts=attempts), DIFFERS, batch="batch 1")
    assert repeated == Step(Action.REPAIR, attempt=again)


def test_a_newer_user_write_ends_the_finding_and_is_judged_anew() -> None:
    newer = seen(row(flagseen=False, written={"flagseen": OURS + 1}), truth())
    for state in (State.INTENDED, State.STUCK):
        answer = step(finding(state, attempts=3), DIFFERS, newer)
        assert answer == Step(Action.REPAIR, attempt=0, ends_as=State.SUPERSEDED)


# --- newer than ours -----------------------------------------------------------------------------


def written_since(previous: Finding, difference: Difference, actual: Row | None) -> bool:
    wanted = () if difference.kind is Kind.EXTRA_ROW else (truth(),)
    return newer_than_ours(previous, difference, seen(actual, *wanted))


@pytest.mark.parametrize(("at", "newer"), [(OURS - 1, False), (OURS, False), (OURS + 1, True)])
def test_a_cell_is_newer_where_its_write_time_is(at: int, newer: bool) -> None:
    actual = row(flagseen=False, written={"flagseen": at})
    assert written_since(finding(), FLAGSEEN, actual) is newer


@pytest.mark.parametrize(
    "actual",
    [row(flagseen=False, written={"headercontent": NOW}), row(flagseen=None)],
    ids=["a cell that agrees is newer", "the cell is still missing"],
)
def test_what_is_not_the_differing_cell_is_not_newer(actual: Row) -> None:
    assert not written_since(finding(), FLAGSEEN, actual)


def test_a_cell_that_we_did_not_write_is_a_new_finding() -> None:
    difference = Difference(Kind.DIFFERING_CELLS, ("bodystartoctet",))
    assert written_since(finding(), difference, row(bodystartoctet=1))


@pytest.mark.parametrize("write_type", [AddToSet, RemoveFromSet])
@pytest.mark.parametrize(("at", "newer"), [(OURS, False), (OURS + 1, True)])
def test_the_time_of_a_set_is_that_of_its_guard(
    write_type: type[AddToSet] | type[RemoveFromSet], at: int, newer: bool
) -> None:
    element = write_type(PROJECTION, SLOT, OURS, "userflags", frozenset({"work"}))
    before = finding(writes=(SetCells(PROJECTION, SLOT, OURS, {"modseq": 12}), element))
    actual = row(userflags=frozenset(), written={"modseq": at})
    difference = Difference(Kind.DIFFERING_CELLS, ("userflags",))
    assert written_since(before, difference, actual) is newer


def test_one_newer_cell_of_several_is_enough() -> None:
    both = Difference(Kind.DIFFERING_CELLS, ("flagseen", "modseq"))
    write = SetCells(PROJECTION, SLOT, OURS, {"flagseen": True, "modseq": 12})
    for newer in both.columns:
        actual = row(flagseen=False, modseq=1, written={newer: OURS + 1})
        assert written_since(finding(writes=(write,)), both, actual)


def test_a_set_that_has_no_guard_cell_is_newer_by_its_own_time() -> None:
    added = AddToSet(APPLICABLE, SLOT, OURS, "userflags", frozenset({"work"}))
    differs = Difference(Kind.DIFFERING_CELLS, ("userflags",))
    for at, newer in ((OURS, False), (OURS + 1, True)):
        actual = Row(gathered("stale").cells, {"userflags": at})
        assert written_since(finding(writes=(added,)), differs, actual) is newer


def test_a_delta_to_a_counter_says_nothing_of_a_row() -> None:
    delta = AddToCounter(MAILBOX_COUNTERS, SLOT, MAILBOX, 1, {Sum.COUNT: 1})
    before = finding(kind=Kind.EXTRA_ROW, writes=(delta, REMOVED))
    assert not written_since(before, EXTRA.difference, row())


def test_another_kind_of_difference_is_newer_and_a_row_that_is_still_missing_is_not() -> None:
    gone = finding(kind=Kind.MISSING_ROW, writes=(FILLED,))
    assert written_since(gone, FLAGSEEN, row(flagseen=False))
    assert not written_since(gone, MISSING.difference, None)


@pytest.mark.parametrize(("at", "newer"), [(OURS, False), (OURS + 1, True)])
def test_a_removed_row_is_newer_where_any_cell_is(at: int, newer: bool) -> None:
    before = finding(kind=Kind.EXTRA_ROW, writes=(REMOVED,))
    assert written_since(before, EXTRA.difference, row(written={"flagseen": at})) is newer
    assert not written_since(before, EXTRA.difference, Row({}))  # it has no write time


# --- what a person does --------------------------------------------------------------------------


def test_a_retry_begins_at_attempt_0_and_is_looked_at_now() -> None:
    stuck = finding(State.STUCK, attempts=3, before=row(), truth=(truth(),))
    again = retried(stuck, NOW)
    assert again.before is None
    assert again.truth == stuck.truth
    assert (again.state, again.attempts, again.writes, again.next_look) == (State.HELD, 0, (), NOW)
    assert step(again, DIFFERS) == Step(Action.REPAIR, attempt=0)


def test_an_acceptance_is_remembered_and_looked_at_now() -> None:
    held = finding(State.REPORTED, kind=Kind.SHADOWED_DELETE, writes=())
    expected = replace(held, accepted=acceptance(Kind.SHADOWED_DELETE, at=NOW), next_look=NOW)
    assert accepted(held, NOW) == expected
