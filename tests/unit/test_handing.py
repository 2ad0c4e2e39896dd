"""Whether a stream observes that would settle what a command hands over: no lease tells of it."""

from __future__ import annotations

from checkpoints.bookmarks import Bookmark
from checkpoints.clock import now_micros
from checkpoints.memory_progress import MemoryBookmarks, MemoryFailingSlices
from streaming.commands.handing import observes
from streaming.pipeline.failures import SliceFailures
from tests.builders.rows import SECOND

STREAM = "mail/message/observe"
SETTLED = {("james", 0): 40}
SILENT = 270 * SECOND


class Observing:
    """An observing stream, as far as it keeps anything."""

    def __init__(self) -> None:
        self.now = now_micros()
        self.bookmarks = MemoryBookmarks(lambda: self.now)
        self.kept = MemoryFailingSlices()
        self.failures = SliceFailures(self.kept, STREAM)

    def begin(self) -> None:
        self.failures = SliceFailures(self.kept, STREAM)
        self.failures.begin(SETTLED)

    def settle(self) -> None:
        self.failures.done(SETTLED)
        self.bookmarks.record(Bookmark(STREAM, SETTLED))

    def runs(self) -> bool:
        return observes(STREAM, self.bookmarks, self.kept, SILENT)


def test_one_that_has_ended_as_it_should_runs_no_more_however_lately_it_settled_something() -> None:
    stream = Observing()
    assert not stream.runs()
    stream.begin()
    assert not stream.runs(), "nothing is known to be settled by it"
    stream.settle()
    assert stream.runs()
    stream.failures.end()
    assert not stream.runs()


def test_the_next_one_runs_as_soon_as_it_has_begun() -> None:
    stream = Observing()
    stream.begin()
    stream.settle()
    stream.failures.end()
    stream.begin()
    assert stream.runs()


def test_one_that_was_killed_counts_until_it_is_silent_for_too_long() -> None:
    stream = Observing()
    stream.begin()
    stream.now = now_micros() - SILENT + 60 * SECOND
    stream.settle()
    assert stream.runs()
    killed = Observing()
    killed.begin()
    killed.now = now_micros() - SILENT - SECOND
    killed.settle()
    assert not killed.runs()
