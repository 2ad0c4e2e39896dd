"""Bookmarks: which offsets each batch read, and from where a fresh checkpoint loses nothing.

A checkpoint is disposable: its state is only keys that were read and have not come out of the
settle window yet. `safe_start` finds the offsets from which all of those are read again.

Only coordinates that the batches gave themselves are compared (their order, their own time, the
watermark they ran under), never a wall clock: when the driver's clock steps, the batches' times
step with it, and the rule still holds. Not covered: a batch whose bookmark is missing *and* whose
own time was behind the watermark. Hence record at the end of each batch, when what came out has
been handled and before Spark commits it: then none is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from reconcilers.model import Micros

Offsets = Mapping[str, Mapping[int, int]]
"""The next offset to read, by topic and partition."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """What one batch of a stream read.

    ``checkpoint`` names the checkpoint that the batch belongs to (Spark's query id, which survives
    restarts and not a fresh checkpoint): batch ids begin anew with each. ``batch_time`` (µs) is the
    batch's own ``current_timestamp()``, ``watermark`` (µs) the one it ran *under* (Spark's
    ``batchWatermarkMs``, ``eventTime.watermark`` in its progress), not the one that it leaves for
    the next: windows that end at or before it have come out and were handled. ``start`` and ``end``
    are its offsets; a partition that is missing in ``start`` was read from its beginning.
    ``recorded_at`` (µs) is given by `Bookmarks.record`; it only goes up.
    """

    stream: str
    checkpoint: str
    batch_id: int
    batch_time: Micros
    watermark: Micros
    start: Offsets
    end: Offsets
    recorded_at: Micros = 0
    name: str = ""


class Bookmarks(Protocol):
    """Implementations: `CassandraBookmarks` in `checkpoints.cassandra`, `MemoryBookmarks`."""

    def record(self, bookmark: Bookmark) -> Bookmark:
        """Keep it as the stream's newest (one writer a stream); returns it with its time."""

    def newest(self, stream: str) -> Bookmark | None:
        """The one recorded last."""

    def recent(self, stream: str) -> list[Bookmark]:
        """Those of the last day and more before the newest, in the order they were recorded."""

    def name(self, bookmark: Bookmark, name: str) -> Bookmark:
        """Keep it under a name, for good; an older one of that name is replaced."""

    def named(self, stream: str, name: str) -> Bookmark | None:
        """The bookmark with this name, None when there is none."""


def after(last: Micros | None, now: Micros) -> Micros:
    """A recording time: now, but later than the last whatever the clock does."""
    return now if last is None else max(now, last + 1)


def safe_start(bookmarks: Sequence[Bookmark], window: Micros) -> Offsets | None:
    """Offsets before which every key has come out, by the last batch that was recorded.

    ``bookmarks`` of one stream, in recorded order; ``window`` is W (µs). A fresh checkpoint starts
    here, so what those before the last one still held is read again by the last. None when the
    bookmarks do not tell: there are none, or the oldest that is known has not come out and is not
    its checkpoint's first. Then only all that Kafka still has is safe, or a full comparison.
    """
    if not bookmarks:
        return None
    newest = bookmarks[-1].checkpoint
    run = _run([each for each in bookmarks if each.checkpoint == newest])
    held = [each for each in run if not _has_come_out(each, run[-1].watermark, window)]
    if not held:
        return run[-1].end
    start = _lowest([each.start for each in held])
    if held[0] is run[0] and run[0].batch_id > 0:  # what the run read before is not known
        earlier = [each for each in bookmarks if each.checkpoint != newest]
        before = safe_start(earlier, window)
        return None if before is None else _reaching_back(start, before)
    return start


def _run(bookmarks: Sequence[Bookmark]) -> list[Bookmark]:
    """The batches of one checkpoint in their order, each once.

    What lies between two (a batch without a bookmark) counts as read by the later.
    """
    by_id = {each.batch_id: each for each in bookmarks}
    run: list[Bookmark] = []
    for batch_id in sorted(by_id):
        each = replace(by_id[batch_id], start=_with_beginnings(by_id[batch_id]))
        if run and run[-1].batch_id < batch_id - 1:
            each = replace(each, start=_reaching_back(each.start, run[-1].end))
        run.append(each)
    return run


def _has_come_out(bookmark: Bookmark, watermark: Micros, window: Micros) -> bool:
    """Whether the window of its keys has ended, and they did not come too late for it.

    A batch whose time lies behind its own watermark (the clock stepped back) may have been dropped.
    """
    in_time = bookmark.batch_time >= bookmark.watermark
    return in_time and bookmark.batch_time + window <= watermark


def _with_beginnings(bookmark: Bookmark) -> Offsets:
    beginnings = {topic: dict.fromkeys(each, 0) for topic, each in bookmark.end.items()}
    return {
        topic: {**beginnings.get(topic, {}), **bookmark.start.get(topic, {})}
        for topic in {*beginnings, *bookmark.start}
    }


def _reaching_back(start: Offsets, before: Offsets) -> Offsets:
    """From where the known batch before ended; a partition that it did not have began at 0."""
    beginning = {topic: dict.fromkeys(partitions, 0) for topic, partitions in start.items()}
    known = {topic: {**beginning.get(topic, {}), **before[topic]} for topic in before}
    return _lowest([start, beginning | known])


def _lowest(offsets: Sequence[Offsets]) -> Offsets:
    lowest: dict[str, dict[int, int]] = {}
    for each in offsets:
        for topic, partitions in each.items():
            mine = lowest.setdefault(topic, {})
            for partition, offset in partitions.items():
                mine[partition] = min(mine.get(partition, offset), offset)
    return lowest
