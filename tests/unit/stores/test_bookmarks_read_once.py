"""Settled offsets are recorded without a read, but for the first time in a process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from checkpoints.bookmarks import Bookmark
from checkpoints.cassandra import CassandraBookmarks, Store
from reconcilers.capture.chain import Mark, Reached
from reconcilers.words.errors import Unreachable
from tests.builders.rows import NOW, SECOND

STREAM, PLACE = "james/message/repair", ("james", 0)


@dataclass
class OneRow:
    """The row of one stream, of which the highest write time counts, as in Cassandra."""

    row: tuple[Any, ...] | None = None
    written: int = 0
    reads: int = 0
    fails: list[bool] = field(default_factory=list)
    """For each of the next writes, whether its answer is lost; it is stored all the same."""

    def prepare(self, cql: str) -> str:
        return cql

    def rows(self, _what: str, _statement: str, *_values: object) -> list[tuple[Any, ...]]:
        self.reads += 1
        return [] if self.row is None else [self.row]

    def run(self, what: str, requests: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        for _, (_stream, *row, at) in requests:
            if at >= self.written:
                self.row, self.written = tuple(row), at
        if self.fails and self.fails.pop(0):
            raise Unreachable(f"{what}: no host answered")


@pytest.fixture
def store() -> OneRow:
    return OneRow()


def process(store: OneRow, now: int = NOW) -> CassandraBookmarks:
    return CassandraBookmarks(cast("Store", store), clock=lambda: now)


def at(offset: int) -> Bookmark:
    heard = {("n1", *PLACE): Reached(Mark(offset, NOW))}
    return Bookmark(STREAM, {PLACE: offset}, heard=heard)


def settled(store: OneRow) -> int:
    """What a process reads that starts after this one was killed."""
    newest = process(store).newest(STREAM)
    assert newest is not None
    assert newest.heard == at(newest.settled[PLACE]).heard, "canaries are those of the offsets"
    return newest.settled[PLACE]


def test_it_is_read_once_and_each_record_counts_at_once(store: OneRow) -> None:
    ours = process(store)
    for offset in range(5):
        ours.record(at(offset))
        assert store.reads == 1 + offset  # of which `settled` is all but one
        assert settled(store) == offset


def test_a_start_after_a_process_whose_clock_was_ahead_is_recorded_after_it(store: OneRow) -> None:
    process(store, NOW + 3600 * SECOND).record(at(1))
    ours = process(store)
    recorded = [ours.record(at(2)), ours.record(at(3))]
    assert [each.recorded_at - NOW - 3600 * SECOND for each in recorded] == [1, 2]
    assert settled(store) == 3


def test_what_another_process_recorded_meanwhile_counts_after_a_recall(store: OneRow) -> None:
    ours = process(store)
    ours.record(at(1))
    process(store, NOW + 3600 * SECOND).record(at(2))
    ours.newest(STREAM)
    ours.record(at(3))
    assert settled(store) == 3


def test_an_attempt_whose_answer_was_lost_does_not_hide_the_next(store: OneRow) -> None:
    ticks = iter([NOW, NOW + SECOND, NOW])  # the clock steps back after it
    ours = CassandraBookmarks(cast("Store", store), clock=lambda: next(ticks))
    ours.record(at(1))
    store.fails = [True]
    with pytest.raises(Unreachable):
        ours.record(at(2))
    ours.record(at(3))
    assert settled(store) == 3
