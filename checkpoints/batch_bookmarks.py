"""The bookmarks of versions up to 0.2: which offsets each batch read. Read once, at an upgrade.

Those versions kept keys, not offsets, in Spark's state. `safe_start` finds the offsets from which
all keys are read again that had not come out yet: there a stream of this version begins, once.

Only coordinates that the batches gave themselves are compared (their order, their own time, the
watermark they ran under), never a wall clock: when the driver's clock steps, the batches' times
step with it, and the rule still holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from checkpoints.bookmarks import Offsets
from reconcilers.words.model import Micros


@dataclass(frozen=True, slots=True)
class BatchBookmark:
    """What one batch of a stream read.

    ``checkpoint`` names the checkpoint that the batch belongs to (Spark's query id, which survives
    restarts and not a fresh checkpoint): batch ids begin anew with each. ``batch_time`` (µs) is the
    batch's own ``current_timestamp()``, ``watermark`` (µs) the one it ran *under* (Spark's
    ``batchWatermarkMs``, ``eventTime.watermark`` in its progress), not the one that it leaves for
    the next: windows that end at or before it have come out and were handled. ``start`` and ``end``
    are its offsets; a partition that is missing in ``start`` was read from its beginning.
    """

    stream: str
    checkpoint: str
    batch_id: int
    batch_time: Micros
    watermark: Micros
    start: Offsets
    end: Offsets


def safe_start(bookmarks: Sequence[BatchBookmark], window: Micros) -> Offsets | None:
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


def _run(bookmarks: Sequence[BatchBookmark]) -> list[BatchBookmark]:
    """The batches of one checkpoint in their order, each once.

    What lies between two (a batch without a bookmark) counts as read by the later.
    """
    by_id = {each.batch_id: each for each in bookmarks}
    run: list[BatchBookmark] = []
    for batch_id in sorted(by_id):
        each = replace(by_id[batch_id], start=_with_beginnings(by_id[batch_id]))
        if run and run[-1].batch_id < batch_id - 1:
            each = replace(each, start=_reaching_back(each.start, run[-1].end))
        run.append(each)
    return run


def _has_come_out(bookmark: BatchBookmark, watermark: Micros, window: Micros) -> bool:
    """Whether the window of its keys has ended, and they did not come too late for it.

    A batch whose time lies behind its own watermark (the clock stepped back) may have been dropped.
    """
    in_time = bookmark.batch_time >= bookmark.watermark
    return in_time and bookmark.batch_time + window <= watermark


def _with_beginnings(bookmark: BatchBookmark) -> Offsets:
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
