"""Which mailboxes may lose rows: small ones, and those that have not lost most of their truth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from reconcilers.model import KeyValue, Row, Slot
from streaming.steps.removals import Removals
from tests.builders.rows import FAMILY, MAILBOX, PROJECTION, row, truth
from tests.fakes.memory_tables import MemoryTables

OTHER_MAILBOX = UUID("11111111-0000-1000-8000-00000000000f")
MIN_ROWS = 10


def message(uid: int) -> UUID:
    return UUID(int=uid << 64 | 0x1000_8000_000000000000)


@dataclass
class CountingTables(MemoryTables):
    """Takes down how many messages each read of the truth asked for."""

    asked: list[int] = field(default_factory=list)

    def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        wanted = list(messageids)
        self.asked.append(len(wanted))
        return super().truth_rows(wanted)


def mailbox(rows: int, *, named: int | None = None) -> CountingTables:
    """A mailbox's list of so many rows, without truth; all of them, or some, name their message."""
    names = rows if named is None else named
    listed = {
        Slot(MAILBOX, uid): row(uid=uid, messageid=message(uid) if uid <= names else None)
        for uid in range(1, rows + 1)
    }
    listed[Slot(OTHER_MAILBOX, 1)] = row(mailboxid=OTHER_MAILBOX, uid=1, messageid=message(999))
    return CountingTables(rows={PROJECTION.name: listed})


def removals(tables: MemoryTables, min_rows: int = MIN_ROWS) -> Removals:
    return Removals(FAMILY, PROJECTION, tables, min_rows)


@pytest.mark.parametrize(("rows", "may"), [(0, True), (9, True), (10, False), (11, False)], ids=str)
def test_only_a_mailbox_of_less_than_ten_rows_may_lose_all_of_them(rows: int, may: bool) -> None:
    assert removals(mailbox(rows)).may_lose_rows(MAILBOX) is may


def test_a_small_mailbox_is_not_asked_for_its_truth() -> None:
    tables = mailbox(9)
    removals(tables).may_lose_rows(MAILBOX)
    assert tables.asked == []


@pytest.mark.parametrize("uid", [1, 5, 10])
def test_one_row_that_has_its_truth_is_enough(uid: int) -> None:
    tables = mailbox(10)
    tables.truths[message(uid)] = (truth(uid=uid, messageid=message(uid)),)
    assert removals(tables).may_lose_rows(MAILBOX) is True


def test_truth_in_another_mailbox_is_none_of_this_one() -> None:
    tables = mailbox(10)
    tables.truths[message(3)] = (truth(mailboxid=OTHER_MAILBOX, uid=3, messageid=message(3)),)
    assert removals(tables).may_lose_rows(MAILBOX) is False


def test_one_copy_of_a_message_in_this_mailbox_is_enough() -> None:
    tables = mailbox(10)
    tables.truths[message(3)] = (
        truth(mailboxid=OTHER_MAILBOX, uid=3, messageid=message(3)),
        truth(uid=30, messageid=message(3)),
    )
    assert removals(tables).may_lose_rows(MAILBOX) is True


def test_rows_that_name_no_message_have_no_truth_but_count() -> None:
    tables = mailbox(10, named=2)
    assert removals(tables).may_lose_rows(MAILBOX) is False
    assert tables.asked == [2]


def with_truth(tables: CountingTables, uids: Iterable[int]) -> CountingTables:
    for uid in uids:
        tables.truths[message(uid)] = (truth(uid=uid, messageid=message(uid)),)
    return tables


@pytest.mark.parametrize(
    ("rows", "have", "may"),
    [
        (250, 0, False),
        (250, 1, False),
        (250, 124, False),
        (250, 125, True),
        (19, 9, False),
        (19, 10, True),
        (12, 3, True),
    ],
)
def test_a_mailbox_that_has_lost_most_of_its_truth_waits_for_a_person(
    rows: int, have: int, may: bool
) -> None:
    """Ten rows at least: fewer may have been expunged at once."""
    tables = with_truth(mailbox(rows), range(1, have + 1))
    assert removals(tables).may_lose_rows(MAILBOX) is may


def test_a_truth_that_was_restored_from_yesterday_lets_none_of_a_new_mailbox_go() -> None:
    tables = with_truth(mailbox(300), range(1, 101))
    assert removals(tables).may_lose_rows(MAILBOX) is False


def test_a_large_mailbox_is_read_in_pieces() -> None:
    tables = mailbox(250)
    removals(tables).may_lose_rows(MAILBOX)
    assert tables.asked == [100, 100, 50]


def test_of_a_large_mailbox_no_more_is_read_than_shows_that_most_have_their_truth() -> None:
    tables = with_truth(mailbox(3_000), range(1, 3_001))
    assert removals(tables).may_lose_rows(MAILBOX) is True
    assert tables.asked == [100] * 6


def test_of_one_that_has_lost_many_a_thousand_rows_are_enough_to_know() -> None:
    tables = with_truth(mailbox(3_000), [7, *range(2_000, 3_001)])
    assert removals(tables).may_lose_rows(MAILBOX) is False
    assert tables.asked == [100] * 10


def test_of_one_that_may_have_lost_all_of_it_as_much_as_it_takes_is_read() -> None:
    tables = with_truth(mailbox(2_000), range(1_950, 2_001))
    assert removals(tables).may_lose_rows(MAILBOX) is False
    assert tables.asked == [100] * 20


@pytest.mark.parametrize("rows", [5, 10])
def test_each_mailbox_is_asked_once(rows: int) -> None:
    tables = mailbox(rows)
    asked = removals(tables)
    answers = {asked.may_lose_rows(MAILBOX) for _ in range(3)}
    assert len(answers) == 1
    assert tables.scanned == [MAILBOX]
    assert asked.may_lose_rows(OTHER_MAILBOX) is True
    assert tables.scanned == [MAILBOX, OTHER_MAILBOX]
