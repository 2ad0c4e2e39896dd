"""The bookmarks' contract: the same for the fake and for Cassandra."""

from dataclasses import replace

import pytest

from checkpoints.bookmarks import Bookmark, Bookmarks, KafkaIds, Place
from checkpoints.cassandra import CassandraBookmarks, Store
from reconcilers.capture.chain import Mark, Reached
from tests.contract.making import DAY, SetClock
from tests.fakes.checkpoints.progress import MemoryBookmarks

NOON = 20_000 * DAY + DAY // 2


@pytest.fixture
def clock() -> SetClock:
    return SetClock(NOON)


@pytest.fixture
def bookmarks(real: Store | None, clock: SetClock) -> Bookmarks:
    return MemoryBookmarks(clock) if real is None else CassandraBookmarks(real, clock=clock)


def a_bookmark(stream: str, settled: int = 0) -> Bookmark:
    topic = "james.mail.imapuidtable"
    positions: dict[Place, int] = {(topic, 0): settled, (topic, 11): 2**40, ("suspects", 0): 0}
    return Bookmark(stream, positions, KafkaIds("cluster", {topic: "one", "suspects": "two"}))


def test_a_stream_without_bookmarks(bookmarks: Bookmarks, stream: str) -> None:
    assert bookmarks.newest(stream) is None
    assert bookmarks.named(stream, "before the upgrade") is None


def test_what_was_recorded_last_comes_back(
    bookmarks: Bookmarks, stream: str, clock: SetClock
) -> None:
    for settled in range(3):
        clock.now += 5_000_000
        recorded = bookmarks.record(a_bookmark(stream, settled))
        assert recorded == replace(a_bookmark(stream, settled), recorded_at=clock.now)
        assert bookmarks.newest(stream) == recorded


def test_streams_do_not_see_each_other(bookmarks: Bookmarks, stream: str) -> None:
    bookmarks.record(a_bookmark(stream))
    assert bookmarks.newest(f"{stream}-observe") is None


def test_the_order_holds_when_the_clock_steps_back(
    bookmarks: Bookmarks, stream: str, clock: SetClock
) -> None:
    recorded = [bookmarks.record(a_bookmark(stream, 0))]
    clock.now -= DAY // 24
    recorded += [bookmarks.record(a_bookmark(stream, 1)), bookmarks.record(a_bookmark(stream, 2))]
    assert [each.recorded_at for each in recorded] == [NOON, NOON + 1, NOON + 2]
    assert bookmarks.newest(stream) == recorded[-1]
    clock.now = NOON + 50
    assert bookmarks.record(a_bookmark(stream, 3)).recorded_at == NOON + 50


def test_ids_that_are_not_known_stay_so(bookmarks: Bookmarks, stream: str) -> None:
    recorded = bookmarks.record(replace(a_bookmark(stream), ids=KafkaIds()))
    assert bookmarks.newest(stream) == recorded


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


def test_names_are_listed_in_order_and_forgotten(bookmarks: Bookmarks, stream: str) -> None:
    assert bookmarks.all_named(stream) == ()
    first = bookmarks.name(bookmarks.record(a_bookmark(stream, 1)), "monday")
    second = bookmarks.name(bookmarks.record(a_bookmark(stream, 2)), "before the upgrade")
    bookmarks.name(a_bookmark(f"{stream}-observe"), "of another")
    assert bookmarks.all_named(stream) == (second, first)
    bookmarks.forget(stream, "monday")
    bookmarks.forget(stream, "never given")
    assert bookmarks.all_named(stream) == (second,)
    assert bookmarks.named(stream, "monday") is None


@pytest.mark.stack
def test_another_process_goes_on_after_the_newest(
    store: Store, stream: str, clock: SetClock
) -> None:
    ahead = CassandraBookmarks(store, clock=lambda: NOON + 2 * DAY).record(a_bookmark(stream, 1))
    behind = CassandraBookmarks(store, clock=clock).record(a_bookmark(stream, 2))
    assert behind.recorded_at == ahead.recorded_at + 1
    assert CassandraBookmarks(store).newest(stream) == behind


def test_how_far_canaries_were_heard_comes_back(bookmarks: Bookmarks, stream: str) -> None:
    heard = {("n1", "events", 0): Reached(Mark(7, 3)), ("n1", "events", 1): Reached(Mark(5), NOON)}
    bookmarks.record(replace(a_bookmark(stream), heard=heard))
    found = bookmarks.newest(stream)
    assert found is not None
    assert found.heard == heard
