"""The fakes of how far the stream has come, in this process's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from checkpoints.bookmarks import Bookmark, after
from checkpoints.clock import now_micros
from checkpoints.failing_slices import FailingSlice
from reconcilers.words.model import Micros


class MemoryBookmarks:
    """`checkpoints.bookmarks.Bookmarks` in dictionaries; nothing is left of older versions."""

    def __init__(self, clock: Callable[[], Micros] = now_micros) -> None:
        self._clock = clock
        self._recorded: dict[str, Bookmark] = {}
        self._named: dict[tuple[str, str], Bookmark] = {}

    def record(self, bookmark: Bookmark) -> Bookmark:
        newest = self.newest(bookmark.stream)
        at = after(newest.recorded_at if newest else None, self._clock())
        self._recorded[bookmark.stream] = replace(bookmark, recorded_at=at)
        return self._recorded[bookmark.stream]

    def newest(self, stream: str) -> Bookmark | None:
        return self._recorded.get(stream)

    def name(self, bookmark: Bookmark, name: str) -> Bookmark:
        self._named[bookmark.stream, name] = replace(bookmark, name=name)
        return self._named[bookmark.stream, name]

    def named(self, stream: str, name: str) -> Bookmark | None:
        return self._named.get((stream, name))

    def all_named(self, stream: str) -> tuple[Bookmark, ...]:
        return tuple(self._named[each] for each in sorted(self._named) if each[0] == stream)

    def forget(self, stream: str, name: str) -> None:
        self._named.pop((stream, name), None)


class MemoryFailingSlices:
    """`checkpoints.failing_slices.FailingSlices` in a dictionary."""

    def __init__(self) -> None:
        self._of: dict[str, FailingSlice] = {}

    def of(self, stream: str) -> FailingSlice | None:
        return self._of.get(stream)

    def keep(self, stream: str, failing: FailingSlice) -> None:
        self._of[stream] = failing

    def forget(self, stream: str) -> None:
        self._of.pop(stream, None)
