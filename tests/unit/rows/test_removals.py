"""Which mailboxes may lose rows: small ones, and those that have not lost most of their truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from reconcilers.words.model import KeyValue, Row, Slot
from streaming.steps.removals import Removals
from tests.builders.rows import FAMILY, MAILBOX, OTHER_MAILBOX, PROJECTION, row, truth
from tests.fakes.memory_tables import MemoryTables

MIN_ROWS = 10


def message(uid: int) -> UUID:
    return UUID(int=uid << 96 | 0x1000_8000_000000000000)


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
    tables = with_truth(mailbox(10), [uid])
    assert removals(tables).may_lose_rows(MAILBOX) is True


@pytest.mark.parametrize("copied_here", [False, True], ids=["elsewhere", "one copy is here"])
def test_truth_in_another_mailbox_is_none_of_this_one(*, copied_here: bool) -> None:
    tables = mailbox(10)
    elsewhere = truth(mailboxid=OTHER_MAILBOX, uid=3, messageid=message(3))
    here = truth(uid=30, messageid=message(3))
    tables.truths[message(3)] = (elsewhere, here) if copied_here else (elsewhere,)
    assert removals(tables).may_lose_rows(MAILBOX) is copied_here


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
        (300, 100, False),  # a new mailbox, and a truth that was restored from yesterday
    ],
)
def test_a_mailbox_that_has_lost_most_of_its_truth_waits_for_a_person(
    rows: int, have: int, may: bool
) -> None:
    """Ten rows at least: fewer may have been expunged at once."""
    tables = with_truth(mailbox(rows), range(1, have + 1))
    assert removals(tables).may_lose_rows(MAILBOX) is may


@pytest.mark.parametrize(
    ("rows", "have", "asked", "may"),
    [
        (250, 0, [100, 100, 50], False),
        (900, 900, [100] * 5, True),
        (30_000, 30_000, [100] * 10, True),
        (3_000, 2_900, [100], False),
    ],
    ids=["in pieces", "until most have it", "a thousand rows are enough", "a part is lost"],
)
def test_of_a_mailbox_no_more_is_read_than_shows_it(
    rows: int, have: int, asked: list[int], *, may: bool
) -> None:
    tables = with_truth(mailbox(rows), range(1, have + 1))
    assert removals(tables).may_lose_rows(MAILBOX) is may
    assert tables.asked == asked


@pytest.mark.parametrize(
    "kept",
    [
        range(1, 1_001),
        range(4_001, 5_001),
        [*range(1, 501), *range(4_501, 5_001)],
        range(2_001, 3_001),
        range(1, 5_001, 5),
        range(1, 4_901),
        [*range(1, 2_001), *range(2_600, 5_001)],
    ],
    ids=["oldest", "newest", "both ends", "middle", "each fifth", "all but the newest", "a period"],
)
def test_whatever_lies_where_in_a_large_mailbox_a_loss_is_noticed(kept: Iterable[int]) -> None:
    """Four fifths of 5,000; the newest hundred, as of an older copy; a period of a ninth."""
    assert removals(with_truth(mailbox(5_000), kept)).may_lose_rows(MAILBOX) is False


def test_few_rows_anywhere_in_a_large_mailbox_may_go() -> None:
    lost = {*range(1, 20), *range(2_500, 2_530), *range(4_982, 5_001), *range(7, 5_000, 4)}
    tables = with_truth(mailbox(5_000), set(range(1, 5_001)) - lost)
    assert removals(tables).may_lose_rows(MAILBOX) is True


def test_old_uids_that_are_far_apart_hide_no_loss_of_the_newest() -> None:
    uids = [*range(100, 100_001, 100), *range(100_001, 104_001)]
    listed = {Slot(MAILBOX, uid): row(uid=uid, messageid=message(uid)) for uid in uids}
    tables = with_truth(CountingTables(rows={PROJECTION.name: listed}), uids[:1_000])
    assert removals(tables).may_lose_rows(MAILBOX) is False


def test_a_gap_between_uids_lets_a_single_row_go() -> None:
    """Parts that begin in the gap hold the last row alone, or few."""
    uids = [*range(1, 2_001), 1_000_000]
    listed = {Slot(MAILBOX, uid): row(uid=uid, messageid=message(uid)) for uid in uids}
    tables = with_truth(CountingTables(rows={PROJECTION.name: listed}), range(1, 2_001))
    assert removals(tables).may_lose_rows(MAILBOX) is True


def test_a_part_is_at_least_twice_what_may_be_lost() -> None:
    tables = with_truth(mailbox(5_000), range(1, 4_701))
    assert removals(tables, min_rows=400).may_lose_rows(MAILBOX) is True
    tables = with_truth(mailbox(5_000), range(1, 4_501))
    assert removals(tables, min_rows=400).may_lose_rows(MAILBOX) is False


@pytest.mark.parametrize("rows", [5, 10])
def test_each_mailbox_is_asked_once(rows: int) -> None:
    tables = mailbox(rows)
    asked = removals(tables)
    answers = {asked.may_lose_rows(MAILBOX) for _ in range(3)}
    assert len(answers) == 1
    assert tables.scanned == [MAILBOX]
    assert asked.may_lose_rows(OTHER_MAILBOX) is True
    assert tables.scanned == [MAILBOX, OTHER_MAILBOX]


@dataclass
class EmptiedTables(CountingTables):
    """Their user empties the mailbox after its first rows were read."""

    def some_slots(self, *_: object) -> Iterator[tuple[Slot, KeyValue | None]]:
        return iter(())


@pytest.mark.parametrize("kept", [range(1, 1_501), ()], ids=["its truth is read", "gone, too"])
def test_a_large_mailbox_that_is_emptied_between_two_reads_has_nothing_to_lose(
    kept: Iterable[int],
) -> None:
    tables = with_truth(EmptiedTables(rows=mailbox(1_500).rows), kept)
    assert removals(tables).may_lose_rows(MAILBOX) is True
