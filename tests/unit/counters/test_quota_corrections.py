"""Quotas: a row for a user's mailboxes together, a large correction of it for a person."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA, QUOTA_CURRENT_VALUE
from reconcilers.declared.tally import Sum
from reconcilers.declared.writes import AddToCounter
from reconcilers.rows.finding import State
from reconcilers.words.errors import Soon
from reconcilers.words.model import Kind
from streaming.counters.correct import Conclusion
from tests.builders.counters import A_NODE_IS_DOWN, BOB, FAMILIES, OF_BOB, OTHER, Bench, K, message
from tests.builders.rows import MAILBOX


@pytest.mark.parametrize(("count", "size"), [(103, 200), (2, 10_201), (-99, 200)])
def test_a_large_correction_of_a_root_waits_for_a_person(count: int, size: int) -> None:
    bench = Bench().with_wrong_quota(count, size)
    bench.look(2 * K)
    found = bench.open_finding(OF_BOB)
    assert (found.kind, found.state) == (Kind.LARGE_CORRECTION, State.HELD)
    assert bench.tables.added == []


def test_what_waits_for_a_person_is_let_go_and_waits_through_other_reasons() -> None:
    bench = Bench().with_wrong_quota(200, 200)
    bench.look(K)
    assert bench.open_finding(OF_BOB).next_look is not None
    assert len(bench.watch) == 0
    bench.expect(OF_BOB)
    bench.trouble = A_NODE_IS_DOWN
    bench.look(K)
    assert bench.open_finding(OF_BOB).kind is Kind.LARGE_CORRECTION


def test_a_small_correction_of_a_root_waits_for_nobody() -> None:
    bench = Bench().with_wrong_quota(102, 10_200)
    bench.look(K)
    assert [write.deltas for write in bench.tables.added] == [{Sum.COUNT: -100, Sum.SIZE: -10_000}]


def test_both_shapes_of_a_quota_hold_the_same_sums() -> None:
    write = AddToCounter(QUOTA_CURRENT_VALUE, OF_BOB.slot, str(BOB), 1, {Sum.SIZE: -5})
    assert write.tally.cells.keys() == CURRENT_QUOTA.cells.keys()
    family = replace(FAMILIES[1], tallies=(QUOTA_CURRENT_VALUE,))
    bench = Bench(families=(FAMILIES[0], family))
    subject = replace(OF_BOB, tally=QUOTA_CURRENT_VALUE)
    bench.set_quota(count=3, size=200)
    bench.expect(subject)
    bench.look(K)
    assert [(each.tally.table, each.deltas) for each in bench.tables.added] == [
        ("quotacurrentvalue", {Sum.COUNT: -1})
    ]


def test_a_quota_sums_up_all_the_mailboxes_of_its_root() -> None:
    bench = Bench()
    bench.tables.give(OTHER, BOB)
    bench.tables.hold(OTHER, message(8, size=50))
    bench.expect(OF_BOB)
    bench.look(K)
    assert bench.tables.rows[CURRENT_QUOTA.name, str(BOB)] == {Sum.COUNT: 3, Sum.SIZE: 250}


def test_a_quota_root_whose_mailboxes_are_in_doubt_waits() -> None:
    bench = Bench().with_wrong_quota(size=300)
    bench.tables.paths[BOB].add(OTHER)
    bench.look(2 * K)
    assert "is in doubt" in bench.open_finding(OF_BOB).told
    assert bench.tables.added == []


def test_the_finding_of_a_quota_row_that_is_gone_ends() -> None:
    bench = Bench().with_wrong_quota(size=300)
    bench.trouble = A_NODE_IS_DOWN
    bench.look(K)
    del bench.tables.rows[CURRENT_QUOTA.name, str(BOB)]
    bench.expect(OF_BOB)
    bench.work()
    assert bench.finding(OF_BOB) is None


def test_a_quota_row_that_goes_before_its_correction_is_not_made() -> None:
    bench = Bench().with_wrong_quota(size=300)
    bench.tables.rows[CURRENT_QUOTA.name, str(BOB)] = None
    looked = Conclusion(frozenset({MAILBOX}), 0, {Sum.COUNT: -2})
    with pytest.raises(Soon):
        bench.correcting.correct(OF_BOB, looked, None)
    assert bench.tables.added == []
