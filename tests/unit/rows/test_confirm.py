"""Step 5: what may be judged, and the reported classes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.rows.confirm import Moment
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
from tests.builders.judging import KNOWN_WHOLE, NEAR, reported, times, verdict
from tests.builders.rows import (
    DELAY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    MOMENT,
    NOW,
    OTHER_ID,
    SECOND,
    partial,
    row,
    seen,
    truth,
)
from tests.builders.slots import slots

SETTLED = MOMENT.horizon

# --- when ----------------------------------------------------------------------------------------


def test_settled_is_one_delay_before_the_confirmation_began() -> None:
    assert Moment(began=100, delay=30).horizon == 70


def test_a_later_moment_has_heard_as_much_more() -> None:
    assert Moment(100, 30, 50).after(30) == Moment(130, 30, 80)
    assert Moment(100, 30, 50).after(30).heard_until == 50
    assert Moment(100, 30).after(30).heard_until == 100


@pytest.mark.parametrize("at", [NOW, NOW + 2 * DELAY], ids=["now", "in the future"])
def test_agreement_needs_no_delay(at: Micros) -> None:
    assert verdict(seen(row(at=at), truth(at=at))) == Consistent()


@pytest.mark.parametrize("young", [SETTLED + 1, NOW, NOW + DELAY])
def test_promise_3_a_write_within_the_delay_is_looked_at_again(young: Micros) -> None:
    assert isinstance(verdict(seen(row(flagseen=False), truth(at=young))), LookAgain)
    assert isinstance(verdict(seen(row(at=young, flagseen=False), truth())), LookAgain)
    assert isinstance(verdict(seen(None, truth(at=young))), LookAgain)
    assert isinstance(verdict(seen(row(at=young), memory=KNOWN_WHOLE)), LookAgain)
    one_cell_that_agrees = row(flagseen=False, written={"modseq": young})
    assert isinstance(verdict(seen(one_cell_that_agrees, truth())), LookAgain)


def test_what_is_not_judged_yet_says_what_was_found_and_why() -> None:
    young = verdict(seen(row(at=NOW, flagseen=False), truth()))
    differs = Difference(Kind.DIFFERING_CELLS, ("flagseen",))
    assert young == LookAgain(differs, "young: written within the delay")
    unheard_of = replace(seen(row(), memory=KNOWN_WHOLE), suspected=None)
    assert verdict(unheard_of) == LookAgain(
        Difference(Kind.EXTRA_ROW),
        "absent from the truth, and no delete was received: one may be in flight",
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


def test_what_was_written_one_delay_ago_is_judged() -> None:
    assert isinstance(verdict(seen(row(at=SETTLED, flagseen=False), truth(at=SETTLED))), Repair)


@pytest.mark.parametrize(("beyond", "seconds"), [(1, 45), (3 * SECOND + 1, 48)])
@pytest.mark.parametrize("side", ["projection", "truth"])
def test_a_write_time_beyond_now_and_the_delay_is_reported_in_seconds(
    side: str, beyond: Micros, seconds: int
) -> None:
    at = {"projection": LONG_AGO, "truth": LONG_AGO, side: NOW + DELAY + beyond}
    one = seen(row(at=at["projection"], flagseen=False), truth(at=at["truth"]))
    assert verdict(one) == Report(
        Kind.FUTURE_WRITE_TIME,
        f"differing_cells, but a cell was written {seconds} s in the future: a clock is wrong",
    )


# --- repaired ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "kind", "column", "told"),
    [
        (None, Kind.MISSING_ROW, None, f"is missing; the truth holds message {MESSAGE_ID}"),
        (
            row(flagseen=False, modseq=1),
            Kind.DIFFERING_CELLS,
            "flagseen",
            "differs in flagseen, modseq",
        ),
        (partial(flagseen=True), Kind.DIFFERING_CELLS, "messageid", ""),
    ],
    ids=["missing", "differing", "partial"],
)
def test_what_is_repaired_is_named(
    actual: Row | None, kind: Kind, column: str | None, told: str
) -> None:
    answer = verdict(seen(actual, truth()))
    assert isinstance(answer, Repair)
    assert answer.difference.kind is kind
    assert column is None or column in answer.difference.columns
    assert f"mailbox {MAILBOX} UID 7 {told}" in answer.sentence


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


def test_an_orphan_that_names_no_message_goes_where_the_whole_truth_is_remembered() -> None:
    """It rests on memory; and what nobody has found before is judged at the next look only."""
    orphan = replace(seen(partial(flagseen=True), consulted=frozenset()), swept=True)
    answer = verdict(orphan)
    assert isinstance(answer, Repair)
    assert answer.rests_on_memory
    assert answer.sentence == (
        f"messages: mailbox {MAILBOX} UID 7 is of no message:"
        " the whole truth is remembered, and has none here"
    )
    assert isinstance(verdict(replace(orphan, suspected=None)), LookAgain)
    assert isinstance(verdict(replace(orphan, suspected=Kind.UNRESOLVED)), LookAgain)


def test_what_is_unresolved_says_what_is_not_named_by_the_family_s_words() -> None:
    assert verdict(seen(partial(flagseen=True), consulted=frozenset())) == Report(
        Kind.UNRESOLVED, "the row names no message and none is remembered for its UID"
    )


def test_an_orphan_that_is_older_than_its_memory_speaks_of_no_delete() -> None:
    answer = verdict(seen(row(), memory=Memory(complete_at=LONG_AGO + 1)))
    assert answer == Report(
        Kind.AMBIGUOUS_RANGE_DELETE,
        "the truth does not have this UID, and no delete of the message in this mailbox was"
        " received"
        " since the row was written: the truth may have lost it before all was remembered",
    )


@pytest.mark.parametrize(
    ("memory", "lost"),
    [
        (Memory(slots(7, 8), complete_at=LONG_AGO), "7, 8"),
        (Memory(slots(30, 9, 100)), "7, 9, 30, 100"),
        (Memory(slots(8), slots(9)), "7, 8, 9"),
        (Memory(frozenset({Slot(MAILBOX, 8, "eve"), Slot(MAILBOX, 8, "bob")})), "7, 8/bob, 8/eve"),
    ],
    ids=["of whole memory", "its own UID too", "what is not sure too", "a longer key"],
)
def test_what_was_lost_is_named_in_order(memory: Memory, lost: str) -> None:
    answer = verdict(seen(row(), memory=replace(memory, range_deletes=times(100))))
    assert isinstance(answer, Report)
    assert f"(known lost: {lost}, deletes seen: 1)" in answer.sentence


# --- what a person decides -----------------------------------------------------------------------

AMBIGUOUS = seen(row(), memory=Memory(slots(7, 8), complete_at=LONG_AGO, range_deletes=times(1)))
SHADOWED = seen(None, truth(), memory=Memory(range_deletes=NEAR))


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
