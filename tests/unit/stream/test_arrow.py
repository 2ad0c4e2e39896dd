"""The keys of a slice: wakes, bad records, and the writes' times."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from reconcilers.capture.frontier import Canary, Echo
from reconcilers.rows.glance import Keys
from reconcilers.words.model import Kind, Wake
from streaming.pipeline.arrow import SettledKeys
from tests.builders.looks import SCHEMA
from tests.builders.rows import FAMILY
from tests.fakes.raw_tables import shape_of

MAILBOX = "11111111-0000-1000-8000-000000000001"
MESSAGE = "22222222-0000-1000-8000-000000000002"


def settled(*rows: dict[str, Any]) -> SettledKeys:
    plain = {"from_truth": False, "looked_again": False, "changes": 1}
    return SettledKeys.of(pa.RecordBatch.from_pylist([plain | row for row in rows], schema=SCHEMA))


def test_each_key_becomes_a_wake_with_all_that_it_told() -> None:
    told = settled(
        {"mailboxid": MAILBOX, "messageid": MESSAGE, "uid": 7, "oldest": 1}
        | {"deleted_from": "imapuidtable", "deleted_at": 3, "from_truth": True, "expires_at": 4}
        | {"changes": 5}
    )
    assert list(told.wakes(FAMILY)) == [
        Wake((UUID(MAILBOX), 7), UUID(MESSAGE), 1, "imapuidtable", 3, True, False, 4, changes=5)
    ]


def test_a_key_that_is_looked_at_again_says_for_what() -> None:
    row = {"mailboxid": MAILBOX, "uid": 7, "looked_again": True}
    (wake,) = settled(row | {"suspected": "extra_row", "projection": "unseen_uids"}).wakes(FAMILY)
    assert (wake.looked_again, wake.suspected) == (True, Kind.EXTRA_ROW)
    assert (wake.source, wake.projection) == (None, "unseen_uids")


def test_the_glance_is_told_what_the_wakes_tell() -> None:
    plain = {"mailboxid": MAILBOX, "messageid": MESSAGE, "uid": 7, "changes": 3}
    rows: list[dict[str, Any]] = [
        plain,
        plain | {"messageid": None},
        {"mailboxid": None, "messageid": MESSAGE},
        {"mailboxid": MAILBOX},
        plain | {"looked_again": True},
        plain | {"deleted_at": 3},
        plain | {"deleted_from": "imapuidtable"},
        plain | {"expires_at": 4},
    ]
    found = settled(*rows, {"echo": None, "reason": "unknown op"})
    keys = found.for_glance(FAMILY)
    assert keys == Keys.of(shape_of(FAMILY), list(found.wakes(FAMILY)))
    assert keys.plain == [True, True, *[False] * 6]
    left = found.wakes(FAMILY, [1, 3])
    assert [(wake.key[1], wake.source) for wake in left] == [(7, None), (None, None)]


def test_a_bad_record_is_kept_apart() -> None:
    found = settled({"reason": "unknown op"}, {"mailboxid": MAILBOX})
    assert [wake.key[0] for wake in found.wakes(FAMILY)] == [UUID(MAILBOX)]
    assert [bad["reason"] for bad in found.bad] == ["unknown op"]


def test_a_canary_is_kept_apart() -> None:
    row = {"topic": "james", "partition": 1, "offset": 7}
    found = settled(
        row | {"echo": "n1/3|1|0|20|10|true|15|17000"},
        row | {"echo": "n2/0|1|0|5|0|false|0|0"},
        {"mailboxid": MAILBOX},
    )
    assert found.echoes == [
        (7, Echo(Canary("n1", 20, 10, steady=True, idle=15, at=17_000), "james", 1)),
        (7, Echo(Canary("n2", 5, 0, steady=False), "james", 1)),
    ]
    assert len(list(found.wakes(FAMILY))) == 1
    assert found.bad == []


TIMES = {
    "that of a key looked at again is not told": (
        [
            {"oldest": 10, "quickest": 9},
            {"oldest": 20, "quickest": 2},
            {"oldest": 5, "quickest": 1, "looked_again": True},
        ],
        (10, 0),
    ),
    "an absurd one is not measured": ([{"oldest": 10, "quickest": 9}, {"oldest": 1}], (10, 0)),
    "an absurd one alone": ([{"oldest": 1}], None),
    "writers whose clocks run ahead": (
        [{"oldest": 1, "quickest": quickest} for quickest in (-6, -5, 4)],
        (1, 1),
    ),
    "looks alone tell none": ([{"looked_again": True, "oldest": 1}], None),
    "nothing at all": ([], None),
}


@pytest.mark.parametrize("case", TIMES)
def test_the_oldest_write_and_the_number_of_fast_writers_are_told(case: str) -> None:
    rows, told = TIMES[case]
    times = settled(*rows).write_times(fast=5)
    assert (times and (times.oldest, times.fast_writers)) == told
