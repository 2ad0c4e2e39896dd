"""Counters of messages whose truth row lacks a cell: counted if both tables have what sums need."""

from __future__ import annotations

import pytest

from reconcilers.declared.tally import Sum
from reconcilers.rows.finding import State
from tests.builders.counters import OF_BOB, OF_MAILBOX, Bench, K, message, truth_of
from tests.builders.rows import MAILBOX


@pytest.fixture
def wrong() -> Bench:
    return Bench().with_wrong_counter()


def held_because(bench: Bench) -> str:
    found = bench.open_finding()
    assert found.state is State.HELD
    assert bench.tables.added == []
    return found.told


LACKING: tuple[dict[str, None], ...] = (
    {"fullcontentoctets": None},
    {"headercontent": None, "fullcontentoctets": None},
    {"headercontent": None, "flagseen": None},
)


@pytest.mark.parametrize("cells", LACKING, ids=" and ".join)
def test_a_truth_row_without_a_cell_that_sums_need_defers_its_mailbox(
    wrong: Bench, cells: dict[str, None]
) -> None:
    wrong.tables.set_truth(message(1), **cells)
    wrong.look(K)
    assert "UID 1" in held_because(wrong)
    assert "is incomplete" in held_because(wrong)


@pytest.mark.parametrize("column", ["headercontent", "internaldate", "bodystartoctet", "modseq"])
def test_a_cell_that_no_sum_needs_may_be_null_in_every_truth_row(column: str) -> None:
    """Far more messages than may have an open finding: a migration of James left them so."""
    bench = Bench()
    many = [message(uid) for uid in range(1, 1301)]
    bench.tables.hold(MAILBOX, *many)
    for each in many:
        bench.tables.set_truth(each, **{column: None})
    bench.set_counter(count=1296, unseen=1296)
    bench.set_quota(count=1296, size=129_600)
    for counter in (OF_MAILBOX, OF_BOB):
        bench.expect(counter)
        bench.look(K)
        assert bench.open_finding(counter).state is State.INTENDED
    assert bench.counter() == (1300, 1300)
    assert bench.tables.rows[OF_BOB.tally.name, OF_BOB.key] == {Sum.COUNT: 1300, Sum.SIZE: 130_000}


def test_an_incomplete_truth_row_that_is_listed_otherwise_comes_first(wrong: Bench) -> None:
    each = message(1)
    odd = truth_of(MAILBOX, each, headercontent=None, fullcontentoctets=each.size + 1)
    wrong.tables.truths[each.messageid] = [odd]
    wrong.look(K)
    assert "differ from the truth" in held_because(wrong)
