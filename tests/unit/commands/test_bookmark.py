"""`reconcile bookmark`: names, and what cannot be named or removed."""

import pytest

from checkpoints.bookmarks import Bookmark
from reconcilers.words.errors import Misconfigured
from streaming.commands.again.bookmark import COLUMNS, BookmarkDesk
from tests.fakes.checkpoints.progress import MemoryBookmarks

NOW = 1_800_000_000_000_000
STREAM = "mail/message/repair"


@pytest.fixture
def bookmarks() -> MemoryBookmarks:
    return MemoryBookmarks(clock=lambda: NOW)


@pytest.fixture
def desk(bookmarks: MemoryBookmarks) -> BookmarkDesk:
    return BookmarkDesk(bookmarks, STREAM)


def test_nothing_is_named_before_something_is_settled(desk: BookmarkDesk) -> None:
    with pytest.raises(Misconfigured, match="has settled nothing yet"):
        list(desk.name("before"))


def test_a_name_tells_its_offsets_and_says_what_it_replaces(
    desk: BookmarkDesk, bookmarks: MemoryBookmarks
) -> None:
    bookmarks.record(Bookmark(STREAM, {("mail", 1): 7, ("mail", 0): 5}))
    told = ["before: settled at 2027-01-15T08:00:00+00:00", "  mail:0:5", "  mail:1:7"]
    assert list(desk.name("before")) == told
    replaced = "bookmark before of 2027-01-15T08:00:00+00:00 is replaced"
    assert list(desk.name("before")) == [replaced, *told]
    assert list(desk.listed()) == told
    [row] = desk.rows()
    assert row == {
        "name": "before",
        "settled": "2027-01-15T08:00:00+00:00",
        "offsets": {"mail:0": 5, "mail:1": 7},
    }
    assert tuple(row) == COLUMNS


def test_only_what_is_there_is_removed_and_the_others_are_named(
    desk: BookmarkDesk, bookmarks: MemoryBookmarks
) -> None:
    bookmarks.record(Bookmark(STREAM, {("mail", 0): 5}))
    list(desk.name("monday"))
    with pytest.raises(Misconfigured, match="no bookmark is named mondya: there are monday"):
        desk.delete("mondya")
    desk.delete("monday")
    assert list(desk.listed()) == []
