"""Counters, what a review found: complete looks, observers, decisions and writes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from reconcilers.declared.tally import Listed, Sum
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import Finding, State
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
from tests.builders.rows import MAILBOX


def wrong_counter() -> Bench:
    bench = Bench()
    bench.set_counter(count=3, unseen=1)
    bench.expect(OF_MAILBOX)
    return bench


def test_what_comes_out_when_a_look_is_complete_was_not_under_way() -> None:
    bench = wrong_counter()
    bench.work()
    bench.come()
    bench.come(changes={MAILBOX: 5})
    bench.work()
    assert bench.counts == {"wrong": 1}


def test_what_comes_out_before_a_look_is_complete_was_under_way() -> None:
    bench = wrong_counter()
    bench.work()
    bench.come(changes={MAILBOX: 5})
    bench.work()
    assert bench.counts == {"unsure": 1}


def test_looks_that_are_complete_are_judged_before_others_are_begun() -> None:
    bench = wrong_counter()
    bench.work()
    bench.watch.expect([OF_BOB])
    bench.come()
    first, second = bench.watch.ready()
    assert (first.counter, second.counter) == (OF_MAILBOX, OF_BOB)


# --- an observer beside the stream ---------------------------------------------------------------


def of_the_stream(bench: Bench, state: State) -> Finding:
    """An open finding of the stream that repairs; the observer has read it."""
    finding = Finding(
        family=OF_MAILBOX.family,
        projection=OF_MAILBOX.tally.name,
        slot=OF_MAILBOX.slot,
        source=None,
        kind=Kind.COUNTER_DRIFT,
        state=state,
        sentence="of the stream",
        found_at=bench.now,
    )
    bench.journal.put(finding)
    bench.recall()
    return finding


def test_an_observer_leaves_the_findings_of_the_stream_alone() -> None:
    for state in (State.INTENDED, State.STUCK, State.HELD):
        bench = Bench(observe=True)
        bench.set_counter(count=3, unseen=1)
        bench.expect(OF_MAILBOX)
        finding = of_the_stream(bench, state)
        bench.look(2 * K)
        assert bench.finding() == finding
        bench.set_counter(count=2, unseen=1)
        bench.look(2 * K)
        assert bench.finding() == finding


def test_an_observer_writes_no_reason_why_it_waits() -> None:
    bench = Bench(observe=True, trouble=A_NODE_IS_DOWN)
    bench.set_counter(count=3, unseen=1)
    bench.expect(OF_MAILBOX)
    bench.look(K)
    assert bench.finding() is None


# --- a person decides meanwhile ------------------------------------------------------------------


def test_what_a_person_accepts_while_looks_are_made_is_carried_out() -> None:
    bench = Bench(most={Sum.COUNT: 0, Sum.SIZE: 0})
    bench.set_quota(count=3, size=200)
    bench.expect(OF_BOB)
    bench.look(K)
    held = bench.finding(OF_BOB)
    assert held is not None
    assert held.kind is Kind.LARGE_CORRECTION
    bench.expect(OF_BOB)
    bench.look(K - 1)
    bench.journal.put(accepted(held, bench.now))
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
    bench = Bench(tables=tables)
    bench.set_counter(count=3, unseen=1)
    bench.expect(OF_MAILBOX)
    bench.look(2 * K)
    assert bench.finding() is None
    assert bench.counts["deferred"] > 0
    tables.moving = False
    tables.hold(MAILBOX, message(1), message(2, seen=True))
    bench.tallies.mark({MAILBOX: [0]}, bench.now)
    bench.look(2 * K)
    assert bench.counter() == (2, 1)


def test_the_before_image_of_two_rows_keeps_both_sums() -> None:
    bench = wrong_counter()
    bench.look(K)
    finding = bench.finding()
    assert finding is not None
    assert finding.before is not None
    assert dict(finding.before.cells) == {"count": 3, "unseen": 1}
    assert finding.before.written == {}
