"""The contract of what is kept of a failing slice: the same for the fake and for Cassandra."""

from dataclasses import replace

import pytest

from checkpoints.cassandra import CassandraFailingSlices, Store
from checkpoints.failing_slices import FailingSlice, FailingSlices
from tests.fakes.checkpoints.progress import MemoryFailingSlices

PARTS = FailingSlice(
    name="a2490b2227371a40",
    times=3,
    unheard=2,
    since=1_800_000_000_000_000,
    end={("james", 0): 2**40, ("james", 11): 7, ("suspects", 0): 0},
    most=9_375,
    until={("james", 0): 2**40 + 5},
)


@pytest.fixture
def failing(real: Store | None) -> FailingSlices:
    return MemoryFailingSlices() if real is None else CassandraFailingSlices(real)


def test_a_stream_that_never_ran_has_left_nothing(failing: FailingSlices, stream: str) -> None:
    assert failing.of(stream) is None
    failing.forget(stream)
    assert failing.of(stream) is None


@pytest.mark.parametrize("left", [PARTS, FailingSlice(), FailingSlice("one", 1, 1, 1)])
def test_what_was_kept_comes_back(failing: FailingSlices, stream: str, left: FailingSlice) -> None:
    failing.keep(stream, left)
    assert failing.of(stream) == left


def test_what_is_kept_last_replaces_all_of_it(failing: FailingSlices, stream: str) -> None:
    failing.keep(stream, PARTS)
    failing.keep(stream, replace(PARTS, times=4, end={}, until={}))
    assert failing.of(stream) == replace(PARTS, times=4, end={}, until={})
    failing.keep(stream, FailingSlice())
    assert failing.of(stream) == FailingSlice()


def test_what_is_forgotten_is_gone_and_may_come_again(failing: FailingSlices, stream: str) -> None:
    failing.keep(stream, PARTS)
    failing.forget(stream)
    assert failing.of(stream) is None
    failing.keep(stream, FailingSlice())
    assert failing.of(stream) == FailingSlice()


def test_streams_do_not_see_each_other(failing: FailingSlices, stream: str) -> None:
    failing.keep(stream, PARTS)
    assert failing.of(f"{stream}-observe") is None
