"""Several deletes of one message in a mailbox: which rows were meant."""

from __future__ import annotations

from reconcilers.words.model import Kind
from tests.property.mail import SECOND, Fate
from tests.property.test_evidence import (
    a_run,
    added,
    expunge,
    is_there,
    kind_reported,
    look,
    message_with_copy,
    settle,
)


def test_a_message_that_came_back_is_judged_by_the_deletes_since_then() -> None:
    """It was moved away and back: what took its old row says nothing of the new one."""
    run = a_run()
    old = added(run)
    settle(run)
    expunge(run, old)
    settle(run)
    settle(run)
    new = added(run, run.world.slots[old])
    settle(run)
    expunge(run, new, Fate.LOST)
    settle(run)
    look(run, new)
    assert not is_there(run, new)


def test_two_deletes_of_the_copy_of_which_the_list_lost_one_do_not_prove_it_either() -> None:
    run = a_run()
    first, copy = message_with_copy(run)
    settle(run)
    for fate in (Fate.LOST, Fate.PROMPT):
        expunge(run, copy, fate)
        run.world.pass_time(SECOND)
    settle(run)
    look(run, first)
    assert is_there(run, first)
    assert kind_reported(run, first) is Kind.AMBIGUOUS_RANGE_DELETE
