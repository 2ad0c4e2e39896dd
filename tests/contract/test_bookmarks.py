"""The bookmarks' contract: the same for the fake and for Cassandra."""

import uuid
from dataclasses import replace

import pytest

from checkpoints.bookmarks import Bookmark, Bookmarks, safe_start
from checkpoints.cassandra import CassandraBookmarks, Store
from checkpoints.memory import MemoryBookmarks

DAY = 86_400_000_000
NOON = 20_000 * DAY + DAY // 2


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bookmarks(kind: str, clock: Clock, request: pytest.FixtureRequest) -> Bookmarks:
    if kind == "memory":
        return MemoryBookmarks(clock)
    return CassandraBookmarks(request.getfixturevalue("store"), clock=clock)


@pytest.fixture
def stream() -> str:
    return f"message-{uuid.uuid4().hex[:8]}"


def a_bookmark(stream: str, batch_id: int = 0) -> Bookmark:
    return Bookmark(
        stream=stream,
        checkpoint="7d1f",
        batch_id=batch_id,
        batch_time=1_700_000_000_000 + batch_id * 5_000,
        watermark=1_699_999_955_000 + batch_id * 5_000,
        start={"james.mail.imapuidtable": {0: batch_id, 11: 2**40}, "reconciler.suspects": {0: 0}},
        end={"james.mail.imapuidtable": {0: batch_id + 1, 11: 2**40}, "reconciler.suspects": {}},
    )


def test_a_stream_without_bookmarks(bookmarks: Bookmarks, stream: str) -> None:
    assert bookmarks.newest(stream) is None
    assert bookmarks.recent(stream) == []
    assert bookmarks.named(stream, "before the upgrade") is None


def test_what_was_recorded_comes_back_in_order(
    bookmarks: Bookmarks, stream: str, clock: Clock
) -> None:
    recorded = []
    for batch_id in range(5):
        clock.now += 5_000_000
        recorded.append(bookmarks.record(a_bookmark(stream, batch_id)))
        assert recorded[-1].recorded_at == clock.now
    assert [replace(each, recorded_at=0) for each in recorded] == [
        a_bookmark(stream, batch_id) for batch_id in range(5)
    ]
    assert bookmarks.recent(stream) == recorded
    assert bookmarks.newest(stream) == recorded[-1]
    assert safe_start(bookmarks.recent(stream), 5_000) == recorded[0].start


def test_streams_do_not_see_each_other(bookmarks: Bookmarks, stream: str) -> None:
    bookmarks.record(a_bookmark(stream))
    assert bookmarks.recent(f"{stream}-observe") == []


def test_the_order_holds_when_the_clock_steps_back(
    bookmarks: Bookmarks, stream: str, clock: Clock
) -> None:
    recorded = [bookmarks.record(a_bookmark(stream, 0))]
    clock.now -= DAY // 24
    recorded += [bookmarks.record(a_bookmark(stream, 1)), bookmarks.record(a_bookmark(stream, 2))]
    assert [each.batch_id for each in bookmarks.recent(stream)] == [0, 1, 2]
    assert [each.recorded_at for each in recorded] == [NOON, NOON + 1, NOON + 2]
    clock.now = NOON + 50
    assert bookmarks.record(a_bookmark(stream, 3)).recorded_at == NOON + 50
    assert bookmarks.newest(stream) == bookmarks.recent(stream)[-1]


def test_recent_reaches_over_midnight(bookmarks: Bookmarks, stream: str, clock: Clock) -> None:
    for batch_id in range(6):
        clock.now = NOON + batch_id * DAY // 6
        bookmarks.record(a_bookmark(stream, batch_id))
    assert [each.batch_id for each in bookmarks.recent(stream)] == list(range(6))


def test_the_same_batch_may_be_recorded_again(bookmarks: Bookmarks, stream: str) -> None:
    bookmarks.record(a_bookmark(stream, 1))
    bookmarks.record(a_bookmark(stream, 1))
    assert [each.batch_id for each in bookmarks.recent(stream)] == [1, 1]


def test_a_name_is_kept_and_may_be_given_again(bookmarks: Bookmarks, stream: str) -> None:
    first = bookmarks.record(a_bookmark(stream, 1))
    second = bookmarks.record(a_bookmark(stream, 2))
    assert bookmarks.name(first, "before") == replace(first, name="before")
    assert bookmarks.named(stream, "before") == replace(first, name="before")
    bookmarks.name(second, "before")
    assert bookmarks.named(stream, "before") == replace(second, name="before")
    assert bookmarks.named(stream, "after") is None
    assert bookmarks.named(f"{stream}-observe", "before") is None
    assert bookmarks.newest(stream) == second


@pytest.mark.stack
def test_another_process_goes_on_after_the_newest(store: Store, stream: str, clock: Clock) -> None:
    ahead = CassandraBookmarks(store, clock=lambda: NOON + 2 * DAY).record(a_bookmark(stream, 1))
    behind = CassandraBookmarks(store, clock=clock).record(a_bookmark(stream, 2))
    assert behind.recorded_at == ahead.recorded_at + 1
    assert CassandraBookmarks(store).newest(stream) == behind
    assert CassandraBookmarks(store).recent(stream) == [ahead, behind]
