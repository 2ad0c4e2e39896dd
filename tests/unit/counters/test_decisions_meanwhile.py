"""Counters, what a review found: complete looks, observers, decisions and writes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from reconcilers.declared.tally import Listed, Sum
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import State
from reconcilers.words.model import Kind
from tests.builders.counters import (
    A_NODE_IS_DOWN,
    OF_BOB,
    OF_MAILBOX,
    Bench,
    CounterTables,
    K,
    message,
)
from tests.builders.found import finding_of
from tests.builders.rows import MAILBOX


@pytest.fixture
def wrong() -> Bench:
    return Bench().with_wrong_counter()


def test_looks_that_are_complete_are_judged_before_others_are_begun(wrong: Bench) -> None:
    wrong.work()
    wrong.watch.expect([OF_BOB])
    wrong.come()
    first, second = wrong.watch.ready()
    assert (first.counter, second.counter) == (OF_MAILBOX, OF_BOB)


# --- an observer beside the stream ---------------------------------------------------------------


@pytest.mark.parametrize("state", [State.INTENDED, State.STUCK, State.HELD])
def test_an_observer_leaves_the_findings_of_the_stream_alone(state: State) -> None:
    bench = Bench(observe=True).with_wrong_counter()
    finding = finding_of(OF_MAILBOX, state, sentence="of the stream", found_at=bench.now)
    bench.journal.put(finding)
    bench.recall()
    for count in (3, 2):
        bench.set_counter(count, unseen=1)
        bench.look(2 * K)
        assert bench.finding() == finding


def test_an_observer_writes_no_reason_why_it_waits() -> None:
    bench = Bench(observe=True, trouble=A_NODE_IS_DOWN).with_wrong_counter()
    bench.look(K)
    assert bench.finding() is None


# --- a person decides meanwhile ------------------------------------------------------------------


def test_what_a_person_accepts_while_looks_are_made_is_carried_out() -> None:
    bench = Bench(most={Sum.COUNT: 0, Sum.SIZE: 0}).with_wrong_quota()
    bench.look(K)
    held = bench.open_finding(OF_BOB)
    assert held.kind is Kind.LARGE_CORRECTION
    bench.expect(OF_BOB)
    bench.look(K - 1)
    bench.journal.accept(accepted(held, bench.now))
    bench.look()
    assert [write.deltas for write in bench.tables.added] == [{Sum.COUNT: -1}]


# --- users write while a mailbox is counted ------------------------------------------------------


class Moving(CounterTables):
    """Whenever the whole mailbox has been listed, a user turns a message's flag over."""

    seen: bool = False
    moving: bool = True

    def listed(self, mailboxid: UUID, first: int = 0, last: int = 2**63 - 1) -> Iterator[Listed]:
        found = list(super().listed(mailboxid, first, last))
        if last > 2**60 and self.moving:
            self.seen = not self.seen
            self.hold(mailboxid, message(1, seen=self.seen), message(2, seen=True))
        yield from found


def test_a_message_that_changes_while_it_is_counted_is_no_difference() -> None:
    tables = Moving()
    bench = Bench(tables=tables).with_wrong_counter()
    bench.look(2 * K)
    assert bench.finding() is None
    assert bench.counts["deferred"] > 0
    tables.moving = False
    tables.hold(MAILBOX, message(1), message(2, seen=True))
    bench.tallies.mark({MAILBOX: [0]}, bench.now)
    bench.look(2 * K)
    assert bench.counter() == (2, 1)
