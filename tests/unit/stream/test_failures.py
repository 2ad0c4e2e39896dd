"""One record that fails each time does not keep the others from being looked at for ever."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.bookmarks import Place
from reconcilers.words.model import Micros
from streaming.pipeline.failures import ALONE_FOR, PARTS, TRIES, TRIES_ALONE, SliceFailures
from streaming.pipeline.ranges import Ranges
from streaming.pipeline.slices import Closed, Slice
from tests.fakes.checkpoints.progress import MemoryFailingSlices

A, B = ("a", 0), ("b", 0)
MINUTE: Micros = 60_000_000
MOST = 1_000


def piece(first: int = 0, last: int = 100) -> Slice:
    return Slice({A: first, B: 0}, {A: last, B: 0}, read_at=50, done_before=40)


def failing(times: int, of: Slice | None = None) -> SliceFailures:
    """It was asked for, and failed, so many times; and is asked for once more."""
    failures = SliceFailures(MemoryFailingSlices(), "s")
    for number in range(times):
        failures.failed(of or piece(), number * MINUTE)
    list(failures.parts(of or piece(), 0))
    return failures


def sizes(parts: Iterator[Slice]) -> list[int]:
    return [each.records for each in parts]


def test_what_fails_now_and_then_is_tried_as_it_is() -> None:
    assert list(failing(TRIES - 1).parts(piece(), 0)) == [piece()]


def test_another_slice_that_fails_is_counted_for_itself() -> None:
    failures = failing(TRIES - 1)
    failures.failed(piece(first=5), 0)
    assert list(failures.parts(piece(first=5), 0)) == [piece(first=5)]


def test_what_fails_again_and_again_is_tried_in_parts() -> None:
    parts = list(failing(TRIES).parts(piece(), 7))
    assert [each.records for each in parts] == [6] * PARTS + [4]
    assert {each.read_at for each in parts} == {50}
    assert [each.done_before for each in parts] == [7] * PARTS + [40]
    assert not any(each.whole for each in parts)


def test_parts_are_taken_of_one_partition_after_the_other() -> None:
    both = Slice({A: 3, B: 5}, {A: 4, B: 7}, 50, 40)
    ends = [dict(each.end) for each in failing(TRIES, both).parts(both, 0)]
    assert ends == [{A: 4, B: 5}, {A: 4, B: 6}, {A: 4, B: 7}]


def test_a_part_that_fails_is_cut_at_once() -> None:
    failures = failing(TRIES)
    failures.failed(piece(12, 18), 0)
    assert sizes(failures.parts(piece(12, 100), 0)) == [1] * 6 + [82]


def test_what_comes_after_the_part_that_fails_is_not_cut() -> None:
    failures = failing(TRIES)
    assert sizes(failures.parts(piece(60, 200), 0)) == [6] * 6 + [4] + [100]
    assert sizes(failures.parts(piece(100, 200), 0)) == [100]
    assert [each.done_before for each in failures.parts(piece(90, 100), 7)] == [7, 40]


def test_when_all_of_it_is_settled_slices_are_whole_again() -> None:
    failures = failing(TRIES)
    failures.done({A: 99, B: 0})
    assert len(sizes(failures.parts(piece(99, 200), 0))) > 1
    failures.done({A: 100, B: 0})
    assert sizes(failures.parts(piece(100, 200), 0)) == [100]


@pytest.mark.parametrize(
    ("times", "after", "hopeless"),
    [
        (TRIES_ALONE, ALONE_FOR, True),
        (TRIES_ALONE - 1, ALONE_FOR, False),
        (TRIES_ALONE, ALONE_FOR - 1, False),
    ],
)
def test_one_record_is_given_up_when_it_failed_often_and_for_long(
    times: int, after: Micros, hopeless: bool
) -> None:
    one, failures = piece(7, 8), SliceFailures(MemoryFailingSlices(), "s")
    for _ in range(times):
        failures.failed(one, 1)
    assert failures.is_hopeless(one, 1 + after) == hopeless
    assert not failures.is_hopeless(piece(7, 9), 1 + after)
    assert not failures.is_hopeless(piece(8, 9), 1 + after)


# --- together with ranges


class Stream:
    """Settles what it can: a slice with one of the ``bad`` records fails, until it is given up."""

    def __init__(self, ends: dict[Place, int], bad: set[tuple[Place, int]]) -> None:
        self.ranges, self.bad, self.now = Ranges(SliceFailures(MemoryFailingSlices(), "s")), bad, 0
        self.looked: list[tuple[Place, int]] = []
        self.given_up: list[tuple[Place, int]] = []
        self.ranges.begin(dict.fromkeys(ends, 0))
        self.ranges.close(Closed(10, place, end) for place, end in ends.items())

    def batch(self) -> None:
        """One batch, up to its first failure; each takes a minute."""
        self.now += MINUTE
        for each in self.ranges.slices(MOST):
            records = [
                (at, n) for at, (first, last) in each.ranges.items() for n in range(first, last)
            ]
            if self.ranges.failures.is_hopeless(each, self.now):
                self.given_up += records
            elif self.bad & set(records):
                self.ranges.failures.failed(each, self.now)
                return
            else:
                self.looked += records
            self.ranges.done(each)

    def run(self) -> None:
        for _ in range(1_000):
            if not self.ranges.slices(MOST):
                return
            self.batch()
        raise AssertionError("it never ends")


def test_a_loss_that_was_accepted_begins_without_what_had_failed_before() -> None:
    stream = Stream({A: 1_000, B: 0}, {(A, 500)})
    for _ in range(TRIES):
        stream.batch()
    stream.ranges.begin({A: 0, B: 0})
    stream.ranges.close([Closed(20, A, 900)])
    assert [each.records for each in stream.ranges.slices(MOST)] == [900]


@given(
    ends=st.fixed_dictionaries({A: st.integers(1, 300), B: st.integers(0, 300)}),
    bad=st.sets(st.tuples(st.sampled_from([A, B]), st.integers(0, 299)), max_size=3),
)
def test_every_record_but_the_bad_ones_is_looked_at_once(
    ends: dict[Place, int], bad: set[tuple[Place, int]]
) -> None:
    stream = Stream(ends, bad)
    stream.run()
    everything = {(place, n) for place, end in ends.items() for n in range(end)}
    assert sorted(stream.given_up) == sorted(bad & everything)
    assert sorted(stream.looked) == sorted(everything - bad)


def test_healthy_records_beside_a_bad_one_are_looked_at_within_some_batches() -> None:
    stream = Stream({A: 1_000, B: 0}, {(A, 500)})
    for _ in range(TRIES + 3):
        stream.batch()
    assert len(stream.looked) >= 500
    stream.run()
    assert stream.given_up == [(A, 500)]


def test_a_slice_that_was_interrupted_has_not_failed() -> None:
    store = MemoryFailingSlices()
    failures = SliceFailures(store, "s")
    failures.begin({A: 0})
    failures.done({A: 5})
    failures.begun(piece(5), 1)
    failures.interrupted()
    failures.end()
    assert store.of("s") is None, "the next start finds a clean end"


def test_an_interrupted_attempt_is_none_of_those_that_nothing_was_heard_of() -> None:
    store = MemoryFailingSlices()
    failures = SliceFailures(store, "s")
    failures.begin({A: 0, B: 0})
    failures.failed(piece(), 1)
    failures.begun(piece(), 2)
    kept = store.of("s")
    assert kept is not None
    assert (kept.times, kept.unheard) == (2, 1)
    failures.interrupted()
    left = store.of("s")
    assert left is not None
    assert (left.times, left.unheard) == (1, 0)
