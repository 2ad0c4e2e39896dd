"""The contract of rows that are left together: the same for the fake and for Cassandra."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from checkpoints.cassandra import Store
from checkpoints.cassandra.lost_rows import CassandraLostRows
from checkpoints.lost_rows import LostRowsStore
from reconcilers.declared.family import Family
from reconcilers.sweep.lost_rows import LostRow
from reconcilers.words.model import Kind, Slot
from tests.contract.making import a_family
from tests.fakes.checkpoints.lost_rows import MemoryLostRows

AT = 1_800_000_000_000_000


@pytest.fixture
def kept(real: Store | None) -> LostRowsStore:
    return MemoryLostRows() if real is None else CassandraLostRows(real)


def test_rows_that_are_left_are_found_by_their_slots_and_listed(
    kept: LostRowsStore, family: Family
) -> None:
    box = uuid.uuid1()
    rows = [LostRow(Slot(box, uid), Kind.ABSENT_WITHOUT_DELETE, AT, AT) for uid in range(500)]
    kept.keep(family, rows)
    asked = [Slot(box, uid) for uid in range(400, 600)]
    assert kept.at(family, asked) == {each.slot: each for each in rows[400:]}
    assert set(kept.all(family)) == set(rows)
    assert list(kept.all(a_family())) == []
    assert kept.at(a_family(), asked) == {}


def test_what_is_kept_again_replaces_what_stands_there(kept: LostRowsStore, family: Family) -> None:
    row = LostRow(Slot(uuid.uuid1(), 7), Kind.AMBIGUOUS_RANGE_DELETE, AT, AT)
    kept.keep(family, [row])
    later = replace(row, reason=Kind.MAILBOX_WITHOUT_TRUTH, seen_at=AT + 5)
    kept.keep(family, [later])
    assert list(kept.all(family)) == [later]


def test_what_is_forgotten_is_left_no_more(kept: LostRowsStore, family: Family) -> None:
    rows = [LostRow(Slot(uuid.uuid1(), 7), Kind.UNRESOLVED, AT, AT) for _ in range(3)]
    kept.keep(family, rows)
    kept.forget(family, [rows[0].slot, rows[1].slot])
    kept.forget(family, [rows[0].slot])
    assert list(kept.all(family)) == rows[2:]
