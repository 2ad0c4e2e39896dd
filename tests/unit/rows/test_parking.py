"""A table that refuses writes: one finding for all that waits for it, until it takes a write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from reconcilers.limits.ceiling import Ceiling
from reconcilers.limits.gate import Admission
from reconcilers.rows.decision import accepted, retried
from reconcilers.rows.finding import Action, Finding, State
from reconcilers.words.errors import Unreachable
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Row
from reconcilers.words.waiting import Wait, Waiting
from streaming.steps.outcome import Outcome
from streaming.steps.parking import REFUSES, Parking
from tests.builders.examining import RULES
from tests.builders.indexes import DELETED, INDEXED, UNSEEN
from tests.builders.slots import uid_of
from tests.fakes.refusing import SLOTS, Stream


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def refused(stream: Stream) -> Stream:
    """It was refused in one batch, and goes on being so."""
    stream.refuse(DELETED)
    stream.settle()
    return stream


def actions(outcomes: Iterable[Outcome]) -> Counter[Action]:
    return Counter(each.action for each in outcomes)


# --- while it refuses ----------------------------------------------------------------------------


def test_there_is_one_finding_however_many_keys(stream: Stream) -> None:
    stream.refuse(DELETED)
    told, *others = stream.settle()
    assert (told.action, told.slot, told.finding) == (Action.REPORT, WHOLE_TABLE, stream.parked())
    assert others == [
        Outcome(slot, Action.LOOK_AGAIN, None, projection=DELETED.name, reason=REFUSES.why)
        for slot in SLOTS
    ]
    parked = stream.parked()
    assert (parked.state, parked.next_look, parked.writes) == (State.REPORTED, None, ())
    assert parked.sentence == (
        "table messagedeleted refuses writes: no MODIFY permission on messagedeleted;"
        " what is wrong there waits"
    )


def test_all_keys_come_back_a_delay_later_with_what_was_suspected(refused: Stream) -> None:
    assert [wake.key[1] for wake in refused.published] == [uid_of(slot) for slot in SLOTS]
    assert {(wake.projection, wake.suspected) for wake in refused.published} == {
        (DELETED.name, Kind.MISSING_ROW)
    }
    assert all(wake.looked_again for wake in refused.published)


WAITING = {Action.LOOK_AGAIN: 1, Action.LOOK_LATER: len(SLOTS) - 1}
"""One tries and comes back, the others come later."""


def test_it_is_asked_once_a_batch_and_its_finding_told_once(refused: Stream) -> None:
    assert len(refused.tables.asked) == 1
    before = refused.parked()
    for _ in range(5):
        assert actions(refused.settle()) == WAITING
        assert len(refused.tables.asked) == 1
        assert len(refused.published) == 1
        assert refused.open_ones() == [replace(before, tried_at=refused.now)]
    assert refused.logged(WHOLE_TABLE) == ["reported"]


def test_only_the_one_that_tries_is_read_at_serial_consistency(refused: Stream) -> None:
    """However many wait, and however often: the others cost nothing until they come back."""
    for _ in range(5):
        refused.tables.confirmed.clear()
        refused.settle()
        assert len(refused.tables.confirmed) == 1


def test_of_many_that_are_found_together_few_are_confirmed(stream: Stream) -> None:
    """The first hundred are read before it is known that the table refuses."""
    stream.refuse(DELETED)
    outcomes = stream.settle([*SLOTS * 30])
    assert len(stream.tables.confirmed) <= 100
    assert actions(outcomes)[Action.LOOK_LATER] == len(SLOTS) * 30 - 100


def test_what_is_reported_or_stuck_waits_for_no_table(stream: Stream) -> None:
    stream.settle(admission=Admission(repairs_wait=Waiting(Wait.BREAKER, "breaker")))
    first, second, *_ = SLOTS
    for slot, state in ((first, State.REPORTED), (second, State.STUCK)):
        (finding,) = [each for each in stream.open_ones() if each.slot == slot]
        stream.journal.put(replace(finding, state=state))
    kept = [each for each in stream.open_ones() if each.slot in (first, second)]
    stream.refuse(DELETED)
    stream.settle(SLOTS[2:])
    for _ in range(20):
        outcomes = stream.settle()
        tried = {each.slot for each in outcomes if each.action is Action.LOOK_AGAIN}
        if not tried & {first, second}:
            left = [each for each in stream.open_ones() if each.slot in (first, second)]
            assert left == kept
            assert {each.slot for each in outcomes}.isdisjoint({first, second})
            return
    raise AssertionError("one of the two tried each time")


def test_what_waits_for_it_takes_nothing_of_the_ceiling(refused: Stream) -> None:
    """Neither its own keys are held by that, nor those of the other projections."""
    assert len(SLOTS) > 1
    only_one = Admission(ceiling=Ceiling(1, 1))
    assert actions(refused.settle(admission=only_one)) == WAITING
    assert len(refused.tables.asked) == 1


def test_a_write_that_is_tried_is_in_the_journal_before_and_its_end_after(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle(SLOTS[:1])
    assert stream.logged(SLOTS[0]) == ["intended", "parked"]


def test_in_another_batch_another_key_tries(stream: Stream) -> None:
    stream.refuse(DELETED)
    tried = []
    for _ in range(30):
        stream.settle()
        tried += stream.tables.asked
    assert set(tried) == set(SLOTS)


def test_other_projections_of_the_same_batch_are_repaired(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle(projection=DELETED)
    outcomes = stream.execute(projection=UNSEEN)
    assert actions(outcomes) == {Action.REPAIR: len(SLOTS)}
    assert stream.repaired(UNSEEN) == set(SLOTS)
    assert stream.repaired(DELETED) == set()
    stream.parked(DELETED)
    stream.settle(projection=UNSEEN)
    assert stream.open_ones() == [stream.parked(DELETED)]


def test_two_tables_may_refuse_at_a_time(stream: Stream) -> None:
    stream.refuse(DELETED, UNSEEN)
    stream.settle(projection=DELETED)
    stream.execute(projection=UNSEEN)
    assert stream.open_ones() == [stream.parked(DELETED), stream.parked(UNSEEN)]
    stream.refuse(UNSEEN)
    stream.settle(projection=DELETED)
    stream.settle(projection=DELETED)
    stream.execute(projection=UNSEEN)
    assert stream.open_ones() == [stream.parked(UNSEEN)]


def test_what_agrees_by_now_is_no_concern_of_a_parked_table(refused: Stream) -> None:
    refused.tables.rows[DELETED.name] = {slot: Row({"uid": uid_of(slot)}) for slot in SLOTS[1:]}
    outcomes = refused.settle(SLOTS[:1]) + refused.execute(SLOTS[1:], kind=None)
    assert actions(outcomes) == {Action.LOOK_AGAIN: 1, Action.NOTHING: len(SLOTS) - 1}
    assert refused.open_ones() == [refused.parked()]


def test_a_batch_without_suspects_asks_nothing_of_the_journal(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream.journal, "recall", None)
    assert stream.settle([]) == []


# --- when it takes writes again ------------------------------------------------------------------


def test_everything_is_repaired_and_the_finding_healed(refused: Stream) -> None:
    parked = refused.parked()
    refused.refuse()
    ended, *others = refused.settle()
    assert (ended.action, ended.slot, ended.finding) == (Action.CLOSE, WHOLE_TABLE, parked)
    assert ended.ended is State.HEALED
    assert actions(others) == {Action.REPAIR: len(SLOTS)}
    assert refused.repaired() == set(SLOTS)
    assert refused.logged(WHOLE_TABLE) == ["reported", "healed"]
    assert {each.attempts for each in refused.open_ones()} == {1}
    assert {each.ended for each in refused.settle()} == {State.VERIFIED}
    assert refused.open_ones() == []


def test_it_may_refuse_again(refused: Stream) -> None:
    refused.refuse()
    refused.settle(SLOTS[:1])
    refused.refuse(DELETED)
    refused.settle(SLOTS[1:])
    assert refused.logged(WHOLE_TABLE) == ["reported", "healed", "reported"]
    assert {each.slot for each in refused.open_ones()} == {WHOLE_TABLE, SLOTS[0]}


# --- what there was before -----------------------------------------------------------------------


def test_what_was_held_waits_for_the_table_from_then_on(stream: Stream) -> None:
    held = stream.settle(
        admission=Admission(repairs_wait=Waiting(Wait.BREAKER, "breaker repairs: too many"))
    )
    assert {each.finding.state for each in held if each.finding} == {State.HELD}
    stream.refuse(DELETED)
    outcomes = stream.settle()
    closed = [each for each in outcomes if each.ended is State.PARKED]
    assert [each.slot for each in closed] == list(SLOTS)
    stream.parked()
    assert stream.logged(SLOTS[6]) == ["held", "parked"]


def test_a_breaker_holds_as_ever_and_nobody_tries(refused: Stream) -> None:
    outcomes = refused.settle(
        admission=Admission(repairs_wait=Waiting(Wait.BREAKER, "breaker repairs: too many"))
    )
    assert {each.finding.state for each in outcomes if each.finding} == {State.HELD}
    assert actions(outcomes) == {Action.KEEP: 1, Action.LOOK_LATER: len(SLOTS) - 1}
    assert refused.tables.asked == []


def test_an_attempt_that_did_not_hold_waits_too(stream: Stream) -> None:
    stream.settle()
    del stream.tables.rows[DELETED.name]
    stream.refuse(DELETED)
    for _ in range(RULES.attempts.most + 2):
        stream.settle()
        stream.parked()
    stream.refuse()
    stream.settle()
    assert {each.attempts for each in stream.open_ones()} == {1}


def test_what_a_person_accepted_is_not_forgotten(stream: Stream) -> None:
    (reported,) = SLOTS[:1]
    stream.settle([reported], admission=Admission(repairs_wait=Waiting(Wait.BREAKER, "breaker")))
    (finding,) = stream.open_ones()
    stream.journal.put(replace(finding, state=State.REPORTED))
    stream.journal.accept(accepted(finding, stream.now))
    stream.refuse(DELETED)
    for _ in range(3):
        (told,) = [each for each in stream.settle(SLOTS) if each.action is Action.KEEP]
        assert told.finding is not None
        assert (told.slot, told.finding.state) == (reported, State.HELD)
        waiting, parked = sorted(stream.open_ones(), key=lambda each: -len(each.slot.key))
        assert (waiting.slot, waiting.writes) == (reported, ())
        assert waiting.accepted
        assert parked.slot == WHOLE_TABLE
        assert not parked.accepted
    stream.refuse()
    stream.settle(SLOTS)
    assert {each.slot for each in stream.open_ones() if each.accepted} == {reported}
    stream.settle(SLOTS)
    assert stream.open_ones() == []


# --- observe mode --------------------------------------------------------------------------------


def test_an_observer_writes_nothing_and_parks_nothing(stream: Stream) -> None:
    stream.refuse(DELETED)
    outcomes = stream.settle(admission=Admission(observe=True))
    assert {each.finding.state for each in outcomes if each.finding} == {State.OBSERVED}
    assert stream.tables.asked == []
    assert {each.state for each in stream.open_ones()} == {State.OBSERVED}


def test_an_observer_leaves_the_live_streams_parked_table_alone(refused: Stream) -> None:
    before = refused.parked()
    refused.refuse()
    refused.settle(admission=Admission(observe=True))
    assert refused.tables.asked == []
    assert before in refused.open_ones()


# --- a row that is refused where others are taken ------------------------------------------------


def test_a_row_that_is_refused_by_itself_is_held_and_parks_nothing(stream: Stream) -> None:
    poisoned = SLOTS[3]
    stream.tables.poisoned = frozenset({poisoned})
    outcomes = stream.settle()
    assert actions(outcomes) == {Action.REPAIR: len(SLOTS) - 1, Action.KEEP: 1}
    (held,) = [each for each in stream.open_ones() if each.state is State.HELD]
    assert held.slot == poisoned
    assert held.told.endswith("held: its table takes others, not this: too large")
    assert held.wait is Wait.ROW
    assert held.next_look == stream.now + RULES.recheck_interval
    for _ in range(RULES.attempts.most):  # now it comes alone
        stream.settle([poisoned])
    (stuck,) = [each for each in stream.open_ones() if each.slot == poisoned]
    assert (stuck.state, stuck.attempts) == (State.STUCK, RULES.attempts.most)
    assert "held: its table takes others, not this: too large; 3 repairs" in stuck.told
    assert WHOLE_TABLE not in {each.slot for each in stream.open_ones()}
    stream.journal.put(retried(stuck, stream.now))
    stream.settle([poisoned])
    assert WHOLE_TABLE not in {each.slot for each in stream.open_ones()}


@pytest.mark.parametrize("wait", [Wait.HOLD, Wait.ROW, Wait.BREAKER])
def test_what_is_accepted_waits_for_its_table_unless_for_something_of_its_own(
    refused: Stream, wait: Wait
) -> None:
    (parked,) = refused.open_ones()
    waits = Waiting(wait, "a reason")
    waiting = replace(parked, slot=SLOTS[0], state=State.HELD, waits=waits)
    parking = Parking(INDEXED, refused.journal, lambda: refused.now)
    held = parking.give_up(accepted(waiting, refused.now))
    assert held is not None
    assert held.wait is (Wait.TABLE if wait is Wait.BREAKER else wait)


def test_such_a_row_keeps_the_others_waiting_only_for_a_while(stream: Stream) -> None:
    poisoned = SLOTS[0]
    stream.tables.poisoned = frozenset({poisoned})
    stream.settle()
    stream.parked()
    for _ in range(20):
        stream.settle()
    assert stream.repaired() == set(SLOTS) - {poisoned}
    (left,) = stream.open_ones()
    assert (left.slot, left.state) == (poisoned, State.STUCK)


# --- crashes -------------------------------------------------------------------------------------

CRASHES: dict[str, Callable[[str, Finding], bool]] = {
    "before the table's finding": lambda doing, at: doing == "put" and at.slot == WHOLE_TABLE,
    "before the intent is closed": lambda doing, at: doing == "close as parked",
}


@pytest.fixture(params=CRASHES)
def crashed(request: pytest.FixtureRequest, stream: Stream) -> Stream:
    """It crashed while it parked the table."""
    stream.refuse(DELETED)
    stream.journal.fails_at = CRASHES[request.param]
    with pytest.raises(Unreachable):
        stream.settle()
    return stream


def test_a_crash_while_parking_leaves_what_the_batch_puts_right(crashed: Stream) -> None:
    assert State.INTENDED in {each.state for each in crashed.open_ones()}
    came = {each.slot for each in crashed.execute() if each.action in WAITING}
    crashed.parked()
    assert came == set(SLOTS)


def test_a_crash_while_parking_is_put_right_by_the_next_look_of_the_key(crashed: Stream) -> None:
    """Where the batch is never executed again: a checkpoint was lost."""
    crashed.settle()
    crashed.parked()
    crashed.refuse()
    crashed.settle()
    crashed.settle()
    assert crashed.open_ones() == []
    assert crashed.repaired() == set(SLOTS)


def test_a_crash_while_parking_counts_no_attempt(crashed: Stream) -> None:
    crashed.refuse()
    crashed.execute()
    assert {each.attempts for each in crashed.open_ones() if each.slot != WHOLE_TABLE} == {1}
    crashed.settle()
    assert crashed.open_ones() == []


def test_a_crash_before_the_tables_finding_is_healed_heals_it_later(refused: Stream) -> None:
    refused.refuse()
    refused.journal.fails_at = lambda doing, at: doing == "close as healed"
    with pytest.raises(Unreachable):
        refused.settle()
    refused.execute()
    (ended,) = [each for each in refused.settle() if each.slot == WHOLE_TABLE]
    assert (ended.slot, ended.ended) == (WHOLE_TABLE, State.HEALED)
    refused.settle()
    assert refused.open_ones() == []


# --- the book of parked tables -------------------------------------------------------------------


def test_another_process_recalls_what_is_parked(refused: Stream) -> None:
    parking = Parking(INDEXED, refused.journal, lambda: refused.now)
    assert parking.parked(DELETED.name) is None
    parking.recall(DELETED.name)
    assert parking.parked(DELETED.name) == refused.parked()
    parking.recall(UNSEEN.name)
    assert parking.parked(UNSEEN.name) is None
    refused.journal.close(refused.parked(), State.HEALED, refused.now)
    parking.recall(DELETED.name)
    assert parking.parked(DELETED.name) is None
    assert parking.took_a_write(DELETED.name) is None
