"""Ranges of offsets: nothing is skipped, nothing but what was not done is read twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from checkpoints.bookmarks import Place
from streaming.pipeline.failures import SliceFailures
from streaming.pipeline.ranges import Ranges
from streaming.pipeline.slices import Closed, Slice, slices
from tests.fakes.checkpoints.progress import MemoryFailingSlices

A: Place = ("james.mail.imapuidtable", 0)
B: Place = ("james.mail.imapuidtable", 1)
C: Place = ("reconciler.suspects", 0)
MANY = 1_000_000


def cut(settled: dict[Place, int], closed: Iterable[Closed], most: int = MANY) -> list[Slice]:
    return list(slices(settled, closed, most))


def test_without_a_closed_window_there_is_nothing_to_look_at() -> None:
    assert cut({A: 5}, []) == []
    assert cut({A: 5}, [Closed(100)]) == []


def test_windows_are_looked_at_together_up_to_the_bound() -> None:
    closed = [Closed(100, A, 10), Closed(101, B, 7), Closed(102, A, 30)]
    (one,) = cut({A: 0, B: 0}, closed)
    assert (one.ranges, one.records, one.done_before) == ({A: (0, 30), B: (0, 7)}, 37, 102)


def test_beyond_the_bound_they_are_cut_along_windows_all_partitions_together() -> None:
    closed = [Closed(101, A, 30), Closed(100, A, 10), Closed(100, B, 7), Closed(101, B, 9)]
    first, second = cut({A: 0, B: 0}, closed, most=22)
    assert (first.ranges, first.done_before) == ({A: (0, 10), B: (0, 7)}, 100)
    assert (second.ranges, second.done_before) == ({A: (10, 30), B: (7, 9)}, 101)
    assert len(cut({A: 0, B: 0}, closed, most=39)) == 1


def test_a_window_beyond_the_bound_is_cut_in_proportion_over_its_partitions() -> None:
    found = cut({A: 0, B: 0}, [Closed(90, A, 2), Closed(100, A, 62), Closed(100, B, 30)], most=30)
    assert [each.ranges for each in found[1:]] == [
        {A: (2, 22), B: (0, 10)},
        {A: (22, 42), B: (10, 20)},
        {A: (42, 62), B: (20, 30)},
    ]
    assert [each.done_before for each in found] == [90, 90, 90, 100]
    assert [each.whole for each in found] == [True, False, False, True]
    assert [each.read_at for each in found] == [90, 100, 100, 100]


def test_of_the_first_window_too_a_part_says_nothing_of_its_time() -> None:
    first, second = slices({A: 0}, [Closed(100, A, 60)], 30, done_before=95)
    assert [(each.read_at, each.done_before) for each in (first, second)] == [(100, 95), (100, 100)]


def test_what_a_clock_step_put_out_of_order_is_united_by_offset() -> None:
    """As Spark let it out: windows 99, 100 and 101 s, whose offsets overlap."""
    closed = [Closed(100, A, 30), Closed(101, A, 10), Closed(102, A, 40)]
    assert [each.ranges for each in cut({A: 0}, closed)] == [{A: (0, 40)}]
    one_by_one = cut({A: 0}, closed, most=30)
    assert [each.ranges for each in one_by_one] == [{A: (0, 30)}, {A: (30, 40)}]


def test_a_hole_is_read_with_what_follows() -> None:
    (one,) = cut({A: 10}, [Closed(100, A, 30)])
    assert one.ranges == {A: (10, 30)}


def test_what_is_settled_is_cut_off() -> None:
    assert cut({A: 30}, [Closed(100, A, 30), Closed(101, A, 12)]) == []


def test_a_new_partition_begins_at_its_beginning() -> None:
    (one,) = cut({A: 5}, [Closed(100, B, 3)])
    assert one.ranges == {B: (0, 3)}
    assert one.end == {A: 5, B: 3}


def test_a_slice_is_named_by_where_it_begins() -> None:
    (one,) = cut({A: 5, B: 0}, [Closed(100, A, 9)])
    (wider,) = cut({B: 0, A: 5}, [Closed(100, A, 9), Closed(101, B, 2)])
    (later,) = cut({A: 9, B: 0}, [Closed(101, B, 2)])
    assert one.name == wider.name != later.name


# --- what is remembered between batches ----------------------------------------------------------


def begun(**offsets: int) -> Ranges:
    ranges = Ranges(SliceFailures(MemoryFailingSlices(), "s"))
    ranges.begin({A: offsets.get("a", 0), B: offsets.get("b", 0)})
    return ranges


def test_what_was_not_done_is_done_again_and_what_was_is_not() -> None:
    ranges = begun()
    ranges.close([Closed(100, A, 10), Closed(101, A, 30)])
    first, second = ranges.slices(20)
    ranges.done(first)
    assert ranges.slices(20) == [second]
    ranges.close([Closed(102, B, 3)])
    again, _third = ranges.slices(20)
    assert (again.name, again.ranges) == (second.name, second.ranges)
    for each in ranges.slices(MANY):
        ranges.done(each)
    assert ranges.settled == {A: 30, B: 3}
    assert ranges.slices(MANY) == []


def test_a_query_begins_after_what_has_waited() -> None:
    ranges = begun(a=4)
    ranges.close([Closed(100, A, 10), Closed(101, A, 8), Closed(100, C, 2), Closed(105)])
    assert ranges.waited() == {A: 10, B: 0, C: 2}
    assert ranges.settled == {A: 4, B: 0}
    assert ranges.nothing_left().done_before == 105
    assert ranges.nothing_left().records == 0


def test_after_a_restart_time_is_known_again_when_a_window_closes() -> None:
    """Counters take a step back of it for changes that come out later than they wait for."""
    ranges = begun()
    ranges.close([Closed(100, A, 10)])
    assert ranges.restart() == {A: 10, B: 0}
    assert ranges.nothing_left().done_before == 0
    ranges.close([Closed(180)])
    assert ranges.nothing_left().done_before == 180


def test_while_released_records_are_not_looked_at_their_time_is_not_told() -> None:
    ranges = begun()
    ranges.close([Closed(100)])
    assert ranges.nothing_left().done_before == 100
    ranges.close([Closed(180)])
    assert ranges.release({A: 5})
    assert ranges.nothing_left().done_before == 100
    for each in ranges.slices(MANY):
        ranges.done(each)
    assert ranges.nothing_left().done_before == 180


def test_the_only_record_of_a_new_partition_is_released() -> None:
    ranges = begun()
    ranges.close([Closed(100)])
    assert ranges.release({A: 0, B: 0, C: 1})
    (one,) = ranges.slices(MANY)
    assert one.ranges == {C: (0, 1)}


def test_another_begin_forgets_what_had_closed() -> None:
    ranges = begun()
    ranges.close([Closed(100, A, 10)])
    ranges.begin({A: 3})
    assert ranges.waited() == {A: 3}
    assert ranges.slices(MANY) == []


# --- whatever comes -------------------------------------------------------------------------------

PLACES = st.sampled_from([A, B, C])
WINDOWS = st.lists(
    st.builds(Closed, st.integers(1, 9), st.none() | PLACES, st.integers(0, 60)), max_size=12
)


@given(st.lists(WINDOWS, max_size=6), st.integers(1, 50), st.lists(st.booleans(), max_size=40))
def test_every_offset_is_done_once_in_order_however_batches_fail(
    batches: list[list[Closed]], most: int, fails: list[bool]
) -> None:
    ranges, done = begun(), {A: 0, B: 0, C: 0}
    for windows in batches:
        ranges.close(windows)
        for each in ranges.slices(most):
            assert each.records <= most + len(each.ranges)
            if fails and fails.pop():
                break
            for place, (first, last) in each.ranges.items():
                assert first == done[place]
                done[place] = last
            ranges.done(each)
    for each in ranges.slices(MANY):
        ranges.done(each)
    ends = [(each.place, each.end) for windows in batches for each in windows if each.place]
    for place in (A, B, C):
        assert ranges.settled.get(place, 0) == max([0, *(end for at, end in ends if at == place)])


@given(st.lists(WINDOWS, max_size=4), st.integers(1, 50))
def test_what_is_said_to_be_looked_at_is(batches: list[list[Closed]], most: int) -> None:
    """When a slice is done, no window that ended before its time is left.

    Each batch closes later windows than the one before it.
    """
    ranges = begun()
    for number, earlier in enumerate(batches):
        windows = [replace(each, until=each.until + 10 * number) for each in earlier]
        ranges.close(windows)
        for each in ranges.slices(most):
            ranges.done(each)
            left = [other for piece in ranges.slices(MANY) for other in piece.ranges]
            waiting = [w for w in windows if w.place in left and w.end > ranges.settled[w.place]]
            assert all(window.until > each.done_before for window in waiting if window.place)
