"""A slice of canaries alone is heard in the driver; anything else is left to the workers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from checkpoints.bookmarks import OffsetRanges
from reconcilers.capture.frontier import Canary, Echo
from reconcilers.words.errors import Unreachable
from streaming.canary.alone import MOST, NUMBERS, CanariesAlone
from streaming.topics import Record, came_astray

TOPIC, KEYSPACE = "james", "reconciler_canary"
RANGE: OffsetRanges = {(TOPIC, 0): (5, 7)}


CELLS = {
    "number": 20,
    "previous": 10,
    "steady": True,
    "idle_us": 15,
    "written_ms": 17,
    "partitions": 1,
}


def canary(offset: int = 5, **changes: Any) -> Record:
    """An event of a canary, as the agent writes it; ``changes`` of its value."""
    after = {name: {"value": cell, "deletion_ts": None} for name, cell in CELLS.items()}
    source = {"keyspace": KEYSPACE, "table": "canary", "ts_us": 20}
    value = {"op": "i", "ts_ms": 1, "source": source, "after": after} | changes
    key = json.dumps({"place": "n1/3", "lane": 1}).encode()
    return Record(TOPIC, 0, offset, key, json.dumps(value).encode())


def heard(
    *records: Record, ranges: OffsetRanges = RANGE, fails: bool = False
) -> list[tuple[int, Echo]] | None:
    def read(asked: OffsetRanges) -> Iterator[Record]:
        assert asked == ranges
        yield from records
        if fails:
            raise Unreachable("no broker")

    return CanariesAlone(read, TOPIC, KEYSPACE, came_astray).heard(ranges)


def test_canaries_alone_are_heard() -> None:
    echo = Echo(Canary("n1", 20, 10, idle=15, at=17_000), TOPIC, 0)
    assert heard(canary(5), canary(6)) == [(5, echo), (6, echo)]


def test_one_that_was_written_while_nodes_moved_says_so() -> None:
    cells = {**CELLS, "steady": False}
    moved = canary(after={name: {"value": cell} for name, cell in cells.items()})
    [(_, echo)] = heard(moved, ranges={(TOPIC, 0): (5, 6)}) or []
    assert not echo.canary.steady


OTHERS: dict[str, Record] = {
    "another table": canary(source={"keyspace": KEYSPACE, "table": "mail"}),
    "another keyspace": canary(source={"keyspace": "apache_james", "table": "canary"}),
    "a delete": canary(op="d"),
    "no number": canary(after={"number": {"value": None}, "previous": {"value": 1}}),
    "a number that is none": canary(after={name: {"value": "x"} for name in (*NUMBERS, "steady")}),
    "no source": canary(source=None),
    "no cells": canary(after=None),
    "no JSON": Record(TOPIC, 0, 5, b"{", b"{"),
    "a list": Record(TOPIC, 0, 5, b"[]", b"[]"),
    "no value": Record(TOPIC, 0, 5, b"{}", None),
    "a place that is no text": Record(TOPIC, 0, 5, b'{"place": 5}', canary().value),
    "nested beyond measure": Record(TOPIC, 0, 5, b"{}", b"[" * 200_000),
    "no key": Record(TOPIC, 0, 5, None, canary().value),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_is_no_canary_is_left_to_the_workers(other: Record) -> None:
    assert heard(canary(5), other) is None


def test_where_not_all_records_came_they_are_left_to_the_workers() -> None:
    assert heard(canary(5)) is None
    assert heard(canary(5), fails=True) is None
    assert heard(canary(5), canary(6), fails=True) is None


def nothing(_ranges: OffsetRanges) -> Iterable[Record]:
    raise AssertionError("is not read at all")


@pytest.mark.parametrize(
    "ranges",
    [
        {(TOPIC, 0): (0, MOST + 1)},
        {(TOPIC, 0): (0, MOST), (TOPIC, 1): (0, 1)},
        {(TOPIC, 0): (0, 1), ("reconciler.suspects", 0): (0, 1)},
    ],
    ids=["large", "large together", "with keys to look at again"],
)
def test_a_large_slice_or_one_of_other_topics_is_not_read(ranges: OffsetRanges) -> None:
    assert CanariesAlone(nothing, TOPIC, KEYSPACE, came_astray).heard(ranges) is None


def test_as_many_as_there_may_be_are_heard() -> None:
    records = [canary(number) for number in range(MOST)]
    assert len(heard(*records, ranges={(TOPIC, 0): (0, MOST)}) or []) == MOST
