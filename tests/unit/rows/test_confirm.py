"""Step 5: what may be judged, and the reported classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconcilers.rows.confirm import Moment, judge
from reconcilers.rows.decision import ACCEPTABLE
from reconcilers.rows.memory import Memory
from reconcilers.rows.seen import Seen
from reconcilers.words.model import (
    Consistent,
    Difference,
    Kind,
    LookAgain,
    Micros,
    Repair,
    Report,
    Row,
    Slot,
    Verdict,
    kind_found,
)
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    MOMENT,
    NOW,
    OTHER_ID,
    PROJECTION,
    SECOND,
    partial,
    row,
    seen,
    truth,
)
from tests.builders.slots import slots

SETTLED = MOMENT.horizon
KNOWN_WHOLE = Memory(known=slots(7), complete_at=LONG_AGO, listing_known_at=0)
ITS_DELETE_HEARD = replace(KNOWN_WHOLE, range_deletes=frozenset({NOW - 100 * SECOND}))


def verdict(one: Seen, accepted: frozenset[Kind] = frozenset()) -> Verdict:
    return judge(FAMILY, PROJECTION, one, MOMENT, accepted)


def reported(one: Seen) -> Kind | None:
    answer = verdict(one)
    return answer.kind if isinstance(answer, Report) else None


def times(*seconds_ago: int) -> frozenset[Micros]:
    return frozenset(NOW - ago * SECOND for ago in seconds_ago)


# --- when ----------------------------------------------------------------------------------------


def test_settled_is_one_delay_before_the_confirmation_began() -> None:
    assert Moment(began=100, delay=30).horizon == 70


def test_a_later_moment_has_heard_as_much_more() -> None:
    assert Moment(100, 30, 50).after(30) == Moment(130, 30, 80)
    assert Moment(100, 30, 50).after(30).heard_until == 50
    assert Moment(100, 30).after(30).heard_until == 100


def test_agreement_needs_no_delay() -> None:
    assert verdict(seen(row(at=NOW), truth(at=NOW))) == Consistent()


@pytest.mark.parametrize("young", [SETTLED + 1, NOW, NOW + DELAY])
def test_promise_3_a_write_within_the_delay_is_looked_at_again(young: Micros) -> None:
    assert isinstance(verdict(seen(row(flagseen=False), truth(at=young))), LookAgain)
    assert isinstance(verdict(seen(row(at=young, flagseen=False), truth())), LookAgain)
    assert isinstance(verdict(seen(None, truth(at=young))), LookAgain)
    assert isinstance(verdict(seen(row(at=young), memory=KNOWN_WHOLE)), LookAgain)


def test_what_is_not_judged_yet_says_what_was_found_and_why() -> None:
    young = verdict(seen(row(at=NOW, flagseen=False), truth()))
    differs = Difference(Kind.DIFFERING_CELLS, ("flagseen",))
    assert young == LookAgain(differs, "young: written within the delay")
    unheard_of = replace(seen(row(), memory=KNOWN_WHOLE), suspected=None)
    assert verdict(unheard_of) == LookAgain(
        Difference(Kind.EXTRA_ROW),
        "absent from the truth, and no delete heard of: it may be on its way",
    )


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (LookAgain(Difference(Kind.EXTRA_ROW), "young"), Kind.EXTRA_ROW),
        (Repair(Difference(Kind.MISSING_ROW), "is missing"), Kind.MISSING_ROW),
        (Report(Kind.DUPLICATE_UID, "two claim it"), None),
        (Consistent(), None),
    ],
)
def test_what_a_verdict_found_for_the_next_look(one: Verdict, expected: Kind | None) -> None:
    assert kind_found(one) is expected


def test_one_young_cell_is_enough_even_where_it_agrees() -> None:
    actual = row(flagseen=False, written={"modseq": NOW})
    assert isinstance(verdict(seen(actual, truth())), LookAgain)


def test_what_was_written_one_delay_ago_is_judged() -> None:
    assert isinstance(verdict(seen(row(at=SETTLED, flagseen=False), truth(at=SETTLED))), Repair)


@pytest.mark.parametrize("side", ["projection", "truth"])
def test_a_write_time_beyond_now_and_the_delay_is_reported(side: str) -> None:
    ahead = NOW + DELAY + 1
    at = {"projection": LONG_AGO, "truth": LONG_AGO, side: ahead}
    one = seen(row(at=at["projection"], flagseen=False), truth(at=at["truth"]))
    assert reported(one) is Kind.FUTURE_WRITE_TIME


def test_a_write_time_in_the_future_says_how_far_in_seconds() -> None:
    ahead = NOW + DELAY + 3 * SECOND + 1
    assert verdict(seen(row(flagseen=False), truth(at=ahead))) == Report(
        Kind.FUTURE_WRITE_TIME,
        "differing_cells, but a cell was written 48 s in the future: a clock is wrong",
    )


def test_a_write_time_in_the_future_of_rows_that_agree_is_nobodys_business() -> None:
    ahead = NOW + 2 * DELAY
    assert verdict(seen(row(at=ahead), truth(at=ahead))) == Consistent()


# --- repaired ------------------------------------------------------------------------------------


def test_a_missing_row_is_repaired_and_says_which_message() -> None:
    answer = verdict(seen(None, truth()))
    assert isinstance(answer, Repair)
    assert answer.difference.kind is Kind.MISSING_ROW
    assert str(MESSAGE_ID) in answer.sentence
    assert str(MAILBOX) in answer.sentence


def test_differing_cells_are_repaired_and_named() -> None:
    answer = verdict(seen(row(flagseen=False, modseq=1), truth()))
    assert isinstance(answer, Repair)
    assert answer.difference.columns == ("flagseen", "modseq")
    assert answer.sentence.endswith("UID 7 differs in flagseen, modseq")


def test_a_partial_row_of_a_living_message_is_repaired() -> None:
    answer = verdict(seen(partial(flagseen=True), truth()))
    assert isinstance(answer, Repair)
    assert "messageid" in answer.difference.columns


# --- reported classes ----------------------------------------------------------------------------


@pytest.mark.parametrize("actual", [None, row(flagseen=False)], ids=["missing", "differing"])
def test_an_incomplete_truth_row_is_reported(actual: Row | None) -> None:
    assert verdict(seen(actual, truth(modseq=None))) == Report(
        Kind.INCOMPLETE_TRUTH_ROW, "the truth row lacks cells that every message has"
    )


def test_a_row_that_both_tables_have_incomplete_is_reported_as_a_fact() -> None:
    headless = {"headercontent": None}
    assert verdict(seen(row(headless), truth(headless))) == Report(
        Kind.INCOMPLETE_IN_BOTH,
        "both tables lack headercontent, which every message has: nothing to repair",
    )


def test_a_duplicate_uid_is_reported_with_both_messages_in_their_order() -> None:
    expected = Report(
        Kind.DUPLICATE_UID, f"messages {MESSAGE_ID}, {OTHER_ID} claim the same mailbox and UID"
    )
    one, other = truth(), truth(messageid=OTHER_ID)
    assert verdict(seen(row(), one, other)) == verdict(seen(row(), other, one)) == expected


@pytest.mark.parametrize("apart", [-10, -1, 0, 1, 10])
@pytest.mark.parametrize("named", ["range", "row"])
def test_a_truth_row_near_a_delete_of_its_own_outlived_it(apart: int, named: str) -> None:
    delete = frozenset({LONG_AGO + apart * SECOND})
    memory = Memory(
        range_deletes=delete if named == "range" else frozenset(),
        row_deletes=delete if named == "row" else frozenset(),
    )
    assert reported(seen(None, truth(at=LONG_AGO), memory=memory)) is Kind.SHADOWED_DELETE


def test_a_message_that_comes_back_under_a_new_uid_was_not_deleted() -> None:
    moved_away = Memory(slots(1, 7), range_deletes=frozenset({LONG_AGO}))
    assert isinstance(verdict(seen(None, truth(at=LONG_AGO), memory=moved_away)), Repair)


@pytest.mark.parametrize(
    "told",
    [
        {"range_deletes": frozenset({LONG_AGO, LONG_AGO + DELAY + 1})},
        {"projection_deletes": frozenset({LONG_AGO})},
        {"row_deletes": frozenset({LONG_AGO})},
        {"known": slots(7), "unsure": slots(1)},
    ],
    ids=["more deletes than lost UIDs", "its projection", "its own UID", "the other is not known"],
)
def test_it_was_where_a_delete_may_have_meant_this_very_uid(told: dict[str, Any]) -> None:
    moved_away = Memory(slots(1, 7), range_deletes=frozenset({LONG_AGO}))
    memory = replace(moved_away, **told)
    assert reported(seen(None, truth(at=LONG_AGO), memory=memory)) is Kind.SHADOWED_DELETE


def test_what_is_still_there_was_not_what_a_delete_meant() -> None:
    moved_away = Memory(slots(1, 7), range_deletes=frozenset({LONG_AGO}))
    one = seen(None, truth(at=LONG_AGO), memory=moved_away, present=slots(1, 7))
    assert reported(one) is Kind.SHADOWED_DELETE


def test_a_delete_shadows_as_far_as_two_clocks_may_differ() -> None:
    """Each may differ from ours by D/2 before repairs pause."""
    for apart, becomes in ((DELAY, Report), (DELAY + 1, Repair)):
        for at in (LONG_AGO - apart, LONG_AGO + apart):
            memory = Memory(range_deletes=frozenset({at}))
            assert isinstance(verdict(seen(None, truth(at=LONG_AGO), memory=memory)), becomes)


def test_a_delete_of_the_projection_alone_shadows_nothing() -> None:
    memory = Memory(projection_deletes=frozenset({LONG_AGO}))
    assert isinstance(verdict(seen(None, truth(at=LONG_AGO), memory=memory)), Repair)


def test_a_row_that_is_there_is_corrected_whatever_was_deleted() -> None:
    memory = Memory(range_deletes=frozenset({LONG_AGO}))
    assert isinstance(verdict(seen(row(flagseen=False), truth(), memory=memory)), Repair)


def test_an_orphan_whose_message_nobody_knows_is_unresolved() -> None:
    orphan = partial(flagseen=True)
    assert reported(seen(orphan, consulted=frozenset())) is Kind.UNRESOLVED


def test_what_is_unresolved_says_what_is_not_named_by_the_family_s_words() -> None:
    assert verdict(seen(partial(flagseen=True), consulted=frozenset())) == Report(
        Kind.UNRESOLVED, "the row names no message and none is remembered for its UID"
    )


def test_an_orphan_without_evidence_is_reported_and_says_what_was_lost() -> None:
    memory = Memory(slots(7, 8), complete_at=LONG_AGO, range_deletes=times(100))
    answer = verdict(seen(row(), memory=memory))
    assert isinstance(answer, Report)
    assert answer.kind is Kind.AMBIGUOUS_RANGE_DELETE
    assert "known lost: 7, 8, deletes seen: 1" in answer.sentence


def test_an_orphan_that_is_older_than_its_memory_speaks_of_no_delete() -> None:
    answer = verdict(seen(row(), memory=Memory(complete_at=LONG_AGO + 1)))
    assert answer == Report(
        Kind.AMBIGUOUS_RANGE_DELETE,
        "the truth does not have this UID, and no delete of the message in this mailbox was heard"
        " since the row was written: the truth may have lost it before all was remembered",
    )


@pytest.mark.parametrize(
    ("memory", "lost"),
    [
        (Memory(slots(30, 9, 100)), "7, 9, 30, 100"),
        (Memory(slots(8), slots(9)), "7, 8, 9"),
        (Memory(frozenset({Slot(MAILBOX, 8, "eve"), Slot(MAILBOX, 8, "bob")})), "7, 8/bob, 8/eve"),
    ],
    ids=["its own UID too", "what is not sure too", "a longer key"],
)
def test_what_was_lost_is_named_in_order(memory: Memory, lost: str) -> None:
    answer = verdict(seen(row(), memory=replace(memory, range_deletes=times(100))))
    assert isinstance(answer, Report)
    assert f"(known lost: {lost}, deletes seen: 1)" in answer.sentence


# --- what a person decides -----------------------------------------------------------------------

AMBIGUOUS = seen(row(), memory=Memory(slots(7, 8), complete_at=LONG_AGO, range_deletes=times(1)))
SHADOWED = seen(None, truth(), memory=Memory(range_deletes=frozenset({LONG_AGO})))


@pytest.mark.parametrize(
    ("held", "kind", "told"),
    [
        (AMBIGUOUS, Kind.AMBIGUOUS_RANGE_DELETE, "UID 7 is not in the truth; accepted"),
        (SHADOWED, Kind.SHADOWED_DELETE, f"UID 7 is missing; the truth holds message {MESSAGE_ID}"),
    ],
)
def test_what_is_accepted_is_carried_out_and_says_so(held: Seen, kind: Kind, told: str) -> None:
    assert reported(held) is kind
    answer = verdict(held, frozenset({kind}))
    assert isinstance(answer, Repair)
    assert answer.sentence.endswith(told)
    assert isinstance(verdict(held, ACCEPTABLE - {kind}), Report)


def test_acceptance_does_not_shorten_the_delay() -> None:
    young = seen(row(at=NOW), memory=AMBIGUOUS.memory)
    assert isinstance(verdict(young, ACCEPTABLE), LookAgain)


def test_memory_is_complete_only_before_the_first_range_delete() -> None:
    assert not Memory().complete
    assert Memory(complete_at=5).complete
    assert Memory(complete_at=5, range_deletes=frozenset({6})).complete
    assert not Memory(complete_at=5, range_deletes=frozenset({5, 9})).complete
