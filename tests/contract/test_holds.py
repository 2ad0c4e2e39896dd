"""The contract of holds: the same for the fake and for Cassandra."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkpoints.cassandra import CassandraHolds, Store
from checkpoints.holds import Holds
from checkpoints.pauses import Resumed
from reconcilers.declared.family import Family
from reconcilers.limits.hold import Hold
from tests.contract.making import a_family, a_slot
from tests.fakes.checkpoints.holds import MemoryHolds

AT = 1_800_000_000_000_000
BY = Resumed(AT + 5, "carol", "it was right")


@pytest.fixture
def holds(real: Store | None) -> Holds:
    return MemoryHolds() if real is None else CassandraHolds(real)


def a_hold(family: Family) -> Hold:
    return Hold(family.name, "messages", a_slot(), AT, "alice", "a look; it's odd")


def test_a_key_is_on_hold_until_it_is_released(holds: Holds, family: Family) -> None:
    hold = a_hold(family)
    assert holds.standing(family, "messages", [hold.slot]) == {}
    holds.place(hold)
    assert holds.standing(family, "messages", [hold.slot, a_slot(8)]) == {hold.slot: hold}
    holds.end(hold, BY)
    assert holds.standing(family, "messages", [hold.slot]) == {}
    assert list(holds.all(family)) == []


def test_a_hold_is_of_one_slot_of_one_projection_and_family(holds: Holds, family: Family) -> None:
    hold, other = a_hold(family), a_hold(family)
    index = replace(hold, projection="deleted_uids")
    for each in (hold, other, index):
        holds.place(each)
    assert holds.standing(family, "messages", [hold.slot]) == {hold.slot: hold}
    assert holds.standing(family, "unseen_uids", [hold.slot]) == {}
    assert holds.standing(a_family(), "messages", [hold.slot]) == {}
    holds.end(hold, BY)
    assert set(holds.all(family)) == {other, index}


def test_several_holds_of_a_slot_end_together_and_the_oldest_is_told(
    holds: Holds, family: Family
) -> None:
    hold = a_hold(family)
    later = replace(hold, asked_at=AT + 1, who="bob")
    for each in (later, hold):
        holds.place(each)
    assert list(holds.all(family)) == [hold]
    holds.end(later, BY)
    assert list(holds.all(family)) == []


def test_one_that_is_withdrawn_leaves_the_others_of_its_slot(holds: Holds, family: Family) -> None:
    hold = a_hold(family)
    later = replace(hold, asked_at=AT + 1, who="bob")
    for each in (hold, later):
        holds.place(each)
    holds.withdraw(hold, BY)
    assert list(holds.all(family)) == [later]
    holds.withdraw(later, BY)
    assert list(holds.all(family)) == []


def test_a_hold_that_is_placed_again_by_a_lost_answer_stays_ended(
    holds: Holds, family: Family
) -> None:
    hold = a_hold(family)
    holds.place(hold)
    holds.end(hold, BY)
    holds.place(hold)
    assert holds.standing(family, "messages", [hold.slot]) == {}


def test_many_slots_are_asked_for_at_once(holds: Holds, family: Family) -> None:
    every = [a_hold(family) for _ in range(250)]
    for each in every[::2]:
        holds.place(each)
    found = holds.standing(family, "messages", [each.slot for each in every])
    assert found == {each.slot: each for each in every[::2]}
