"""The contract of losses: the same for the fake and for Cassandra."""

import pytest

from checkpoints.cassandra import CassandraLosses, Store
from checkpoints.losses import Loss, Losses
from tests.contract.making import a_name
from tests.fakes.checkpoints.losses import MemoryLosses

AT = 1_800_000_000_000_000
OLD, SPAN = Loss(AT, "CDC is off for a watched table"), Loss(AT + 9, "node a, james/1: 95 s it's")
SAME_TIME = Loss(AT + 9, "node b, james/0: 3 s")


@pytest.fixture
def losses(real: Store | None) -> Losses:
    return MemoryLosses() if real is None else CassandraLosses(real, a_name("james"))


def test_nothing_is_lost_at_first(losses: Losses) -> None:
    assert losses.since(0) == ()


def test_losses_are_told_the_newest_first_and_each_once(losses: Losses) -> None:
    for each in (SPAN, OLD, SAME_TIME, OLD):
        losses.record(each)
    assert losses.since(0) == (SAME_TIME, SPAN, OLD)


def test_those_that_a_sweep_has_made_good_are_left_out(losses: Losses) -> None:
    losses.record(OLD)
    losses.record(SPAN)
    assert losses.since(AT + 1) == (SPAN,)
    assert losses.since(SPAN.at) == (SPAN,)
    assert losses.since(SPAN.at + 1) == ()
