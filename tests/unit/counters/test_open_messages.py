"""Messages with an open finding widen the interval of their counters, and do not hold it up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.counters.open_message import (
    ANY_SIZE,
    Margin,
    OpenMessage,
    Standing,
    margin_of,
    open_message,
    standing_of,
)
from reconcilers.declared.tally import Listed, Sum
from reconcilers.rows.finding import AND, Finding, State
from reconcilers.words.errors import ReadFailed
from reconcilers.words.model import KeyValue, Kind, Row, Slot
from streaming.counters.open_messages import MOST
from tests.builders.counters import OF_BOB, OF_MAILBOX, OTHER, Bench, K, message
from tests.builders.findings import acceptance
from tests.builders.found import finding_at
from tests.builders.rows import MAILBOX

REPAIRS = (Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW)
REPORTED = (
    Kind.INCOMPLETE_TRUTH_ROW,
    Kind.DUPLICATE_UID,
    Kind.SHADOWED_DELETE,
    Kind.UNRESOLVED,
    Kind.AMBIGUOUS_RANGE_DELETE,
    Kind.FUTURE_WRITE_TIME,
    Kind.UNGUARDABLE,
    Kind.MAILBOX_WITHOUT_TRUTH,
    Kind.UNREADABLE,
)


def finding(kind: Kind, state: State, uid: int = 3, *, accepted: bool = False) -> Finding:
    source = str(message(uid).messageid)
    given = acceptance(kind) if accepted else frozenset()
    return finding_at(uid, kind, state, source=source, accepted=given)


def opened(kind: Kind, standing: Standing, uid: int = 3) -> OpenMessage:
    return OpenMessage(uid, frozenset({message(uid).messageid}), kind, standing)


Open = Mapping[UUID, Sequence[OpenMessage]]


def here(kind: Kind, standing: Standing = Standing.UNDECIDED) -> Open:
    return {MAILBOX: [opened(kind, standing)]}


# --- how far a finding has come -------------------------------------------------------------------


@pytest.mark.parametrize("kind", REPAIRS)
@pytest.mark.parametrize("state", [State.HELD, State.OBSERVED])
def test_a_repair_that_is_held_is_decided(kind: Kind, state: State) -> None:
    assert standing_of(finding(kind, state)) is Standing.DECIDED


@pytest.mark.parametrize("kind", REPORTED)
@pytest.mark.parametrize("state", [State.REPORTED, State.HELD])
def test_what_a_person_has_to_decide_is_undecided(kind: Kind, state: State) -> None:
    assert standing_of(finding(kind, state)) is Standing.UNDECIDED


@pytest.mark.parametrize("kind", REPORTED)
def test_what_a_person_has_accepted_is_decided(kind: Kind) -> None:
    assert standing_of(finding(kind, State.REPORTED, accepted=True)) is Standing.DECIDED


def test_a_repair_that_was_sent_is_under_way_and_one_that_is_stuck_undecided() -> None:
    assert standing_of(finding(Kind.MISSING_ROW, State.INTENDED)) is Standing.BEING_REPAIRED
    assert standing_of(finding(Kind.MISSING_ROW, State.STUCK)) is Standing.UNDECIDED


def test_a_finding_names_its_uid_and_its_message() -> None:
    found = open_message(finding(Kind.EXTRA_ROW, State.HELD))
    assert found == opened(Kind.EXTRA_ROW, Standing.DECIDED)


def test_a_finding_names_every_message_that_may_claim_its_uid() -> None:
    """So it is of an orphan that names one message where another is remembered."""
    ids = frozenset({message(3).messageid, message(4).messageid})
    of_both = replace(
        finding(Kind.AMBIGUOUS_RANGE_DELETE, State.REPORTED), source=AND.join(map(str, ids))
    )
    undecided = Standing.UNDECIDED
    assert open_message(of_both) == OpenMessage(3, ids, Kind.AMBIGUOUS_RANGE_DELETE, undecided)
    of_nobody = open_message(replace(of_both, source=None))
    assert of_nobody is not None
    assert of_nobody.sources == frozenset()


def test_a_finding_of_something_else_is_no_message() -> None:
    whole = finding_at(Slot(), Kind.TABLE_REFUSES, State.HELD)
    assert open_message(whole) is None


# --- what it counts -------------------------------------------------------------------------------


ONE = message(3, size=50)
Sizes = tuple[tuple[int, int, int], tuple[int, int, int]]


def told(margin: Margin) -> Sizes:
    least, most = margin.least, margin.most
    return (
        (least[Sum.COUNT], least[Sum.UNSEEN], least[Sum.SIZE]),
        (most[Sum.COUNT], most[Sum.UNSEEN], most[Sum.SIZE]),
    )


NONE_OF_IT = (0, 0, 0)


@pytest.mark.parametrize(
    ("listed", "truths", "margin"),
    [
        ([ONE], [], ((-1, -1, -50), NONE_OF_IT)),
        ([], [ONE], (NONE_OF_IT, (1, 1, 50))),
        ([ONE], [ONE, message(3, seen=True, size=9)], (NONE_OF_IT, (1, 0, 9))),
        ([message(3, seen=True, size=70)], [ONE], ((0, 0, -20), (0, 1, 0))),
        ([ONE], [ONE], (NONE_OF_IT, NONE_OF_IT)),
    ],
)
def test_what_is_undecided_counts_as_either_side(
    listed: list[Listed], truths: list[Listed], margin: Sizes
) -> None:
    undecided = opened(Kind.AMBIGUOUS_RANGE_DELETE, Standing.UNDECIDED)
    assert told(margin_of(undecided, listed, truths)) == margin


@pytest.mark.parametrize(("listed", "truths"), [([ONE], []), ([], [ONE])])
def test_what_is_decided_counts_as_the_truth_has_it(
    listed: list[Listed], truths: list[Listed]
) -> None:
    margin = margin_of(opened(Kind.EXTRA_ROW, Standing.DECIDED), listed, truths)
    by = len(truths) - len(listed)
    assert told(margin) == ((by, by, 50 * by), (by, by, 50 * by))
    assert not margin.undecided


@pytest.mark.parametrize("kind", [Kind.UNRESOLVED, Kind.UNREADABLE])
def test_of_what_is_hidden_there_may_be_a_message_of_any_size(kind: Kind) -> None:
    margin = margin_of(opened(kind, Standing.UNDECIDED), [], [])
    assert told(margin) == (NONE_OF_IT, (1, 1, ANY_SIZE))


def test_an_incomplete_truth_row_may_count_as_none() -> None:
    margin = margin_of(opened(Kind.INCOMPLETE_TRUTH_ROW, Standing.UNDECIDED), [ONE], [ONE])
    assert told(margin) == ((-1, -1, -50), NONE_OF_IT)


def test_what_both_tables_have_alike_incomplete_is_no_open_message() -> None:
    """It counts as it is listed, however many there are."""
    for state in (State.REPORTED, State.HELD, State.OBSERVED):
        assert open_message(finding(Kind.INCOMPLETE_IN_BOTH, state)) is None
    assert open_message(finding(Kind.INCOMPLETE_TRUTH_ROW, State.REPORTED)) is not None


def test_a_truth_row_without_a_size_may_have_any() -> None:
    margin = margin_of(opened(Kind.INCOMPLETE_TRUTH_ROW, Standing.UNDECIDED), [], [None])
    assert told(margin) == (NONE_OF_IT, (1, 1, ANY_SIZE))


# --- the counters around it -----------------------------------------------------------------------


def bench(listed: Sequence[Listed] = (), true: Sequence[Listed] = ()) -> Bench:
    """Two messages that are right, and at UID 3 what each side has."""
    made = Bench()
    here = [message(1), message(2, seen=True)]
    made.tables.hold(MAILBOX, *here, *listed)
    for each in listed:
        made.tables.truths.pop(each.messageid)
    for each in true:
        made.tables.set_truth(each)
    made.remember(MAILBOX, message(3))
    return made


def stores(made: Bench, count: int, unseen: int) -> Bench:
    made.set_counter(count, unseen)
    made.set_quota(count, 100 * count)
    made.expect(OF_MAILBOX, OF_BOB)
    return made


def judged(made: Bench, count: int, unseen: int, told: Open) -> None:
    """While these messages are open, and both counters hold so many."""
    made.come(open_messages=told)
    stores(made, count, unseen)
    made.look(2 * K, open_messages=told)


SIDES = [([message(3)], []), ([], [message(3)])]


@pytest.mark.parametrize("kind", REPORTED)
@pytest.mark.parametrize(("listed", "true"), SIDES)
@pytest.mark.parametrize("count", [2, 3])
def test_a_counter_that_either_side_makes_right_is_left_alone(
    kind: Kind, listed: list[Listed], true: list[Listed], count: int
) -> None:
    made = bench(listed, true)
    judged(made, count, count - 1, here(kind))
    assert made.tables.added == []
    assert made.finding() is made.finding(OF_BOB) is None


@pytest.mark.parametrize("kind", REPORTED)
@pytest.mark.parametrize(("listed", "true"), SIDES)
@pytest.mark.parametrize(("count", "becomes"), [(0, 2), (6, 3)])
def test_a_counter_that_no_side_makes_right_becomes_as_right_as_is_known(
    kind: Kind, listed: list[Listed], true: list[Listed], count: int, becomes: int
) -> None:
    made = bench(listed, true)
    judged(made, count, max(count - 1, 0), here(kind))
    assert made.counter() == (becomes, becomes - 1)
    quota = made.tables.rows["current_quota", "#private&bob"]
    assert quota is not None
    assert quota[Sum.COUNT] == becomes
    assert [each.state for each, _ in made.told].count(State.HELD) == 0


@pytest.mark.parametrize(("decided", "count"), [([], 2), ([message(3)], 3)])
def test_when_it_is_decided_the_counter_becomes_exact(decided: list[Listed], count: int) -> None:
    made = bench([message(3)], [])
    undecided = here(Kind.AMBIGUOUS_RANGE_DELETE)
    judged(made, 6, 5, undecided)
    assert made.counter() == (3, 2)
    made.tables.hold(MAILBOX, message(1), message(2, seen=True), *decided)
    made.tallies.mark({MAILBOX: {0}}, made.now)
    made.come({MAILBOX: 1})
    made.expect(OF_MAILBOX, OF_BOB)
    made.look(2 * K)
    assert made.counter() == (count, count - 1)
    assert made.finding() is None


@pytest.mark.parametrize(("listed", "true"), SIDES)
@pytest.mark.parametrize("count", [0, 2, 3, 6])
def test_a_repair_that_is_held_counts_as_the_truth_has_it(
    listed: list[Listed], true: list[Listed], count: int
) -> None:
    kind = Kind.EXTRA_ROW if listed else Kind.MISSING_ROW
    waits = here(kind, Standing.DECIDED)
    made = bench(listed, true)
    judged(made, count, max(count - 1, 0), waits)
    assert made.counter()[0] == 2 + len(true)


def test_two_messages_that_claim_one_uid_do_not_hold_up_the_counters() -> None:
    made = bench([message(3)], [message(3)])
    other = Listed(3, UUID(int=99, version=1), seen=True, size=7)
    made.tables.set_truth(other)
    made.remember(MAILBOX, other)
    claimed = here(Kind.DUPLICATE_UID)
    judged(made, 6, 2, claimed)
    assert made.counter() == (4, 2)


def test_another_difference_without_a_finding_comes_first() -> None:
    made = bench([message(3)], [])
    made.come(open_messages=here(Kind.EXTRA_ROW, Standing.DECIDED))
    made.tables.truths.pop(message(1).messageid)
    stores(made, 6, 5)
    made.look(K, open_messages=here(Kind.EXTRA_ROW, Standing.DECIDED))
    assert made.tables.added == []
    assert "1 messages" in made.open_finding().told


def test_with_very_many_of_them_it_waits() -> None:
    many = {
        MAILBOX: [
            opened(Kind.AMBIGUOUS_RANGE_DELETE, Standing.UNDECIDED, uid) for uid in range(MOST + 1)
        ]
    }
    made = bench()
    made.come(open_messages=many)
    stores(made, 6, 5)
    made.look(K, open_messages=many)
    assert made.open_finding().told.endswith(f"{MOST + 1} messages there have open findings")


BEING_REPAIRED = [opened(Kind.DIFFERING_CELLS, Standing.BEING_REPAIRED, uid=1)]


def test_while_a_message_there_is_being_repaired_it_waits_and_says_nothing() -> None:
    made = stores(Bench(), 3, 1)
    made.look(2 * K, open_messages={MAILBOX: BEING_REPAIRED})
    assert made.tables.added == []
    assert made.finding() is None
    made.look(2 * K)
    assert made.counter() == (2, 1)


def test_an_open_finding_in_another_mailbox_does_not_matter() -> None:
    made = stores(Bench(), 3, 1)
    made.look(K, open_messages={OTHER: BEING_REPAIRED})
    assert made.counter() == (2, 1)


def test_a_message_that_cannot_be_read_is_not_read_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = bench()
    read = made.tables.truth_rows

    def refusing(messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        asked = list(messageids)
        if message(3).messageid in asked:
            raise ReadFailed("too many tombstones")
        return read(asked)

    monkeypatch.setattr(made.tables, "truth_rows", refusing)
    judged(made, 6, 5, here(Kind.UNREADABLE))
    assert made.counter() == (3, 2)
