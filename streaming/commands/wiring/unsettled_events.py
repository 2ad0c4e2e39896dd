"""Finds the events of a place that Kafka holds and the stream has not settled."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field

from checkpoints.bookmarks import Bookmark, Place, Positions, flat
from reconcilers.words.errors import Retryable
from reconcilers.words.model import KeyValue, Slot
from streaming.topics import Record, Watcher

MOST = 20_000
"""Records of a partition that are searched, the newest."""
TABLE = re.compile(rb'"table"\s*:\s*"(\w+)"')


@dataclass(slots=True)
class UnsettledEvents:
    """Reads the ends of these topics once. ``newest`` returns what the stream has settled."""

    watcher: Callable[[], Watcher]
    topics: tuple[str, ...]
    newest: Callable[[], Bookmark | None]
    _told: list[str] = field(default_factory=list)
    _records: list[Record] | None = None

    def of(self, slot: Slot, sources: Collection[KeyValue]) -> Iterator[str]:
        """A line for each event that names the place, in the order of its partition."""
        if self._records is None:
            self._records = self._read()
        for each in self._records:
            if names(each, slot, sources):
                found = TABLE.search(each.value or b"")
                table = found[1].decode() if found else "an unknown table"
                yield f"event {each.topic}/{each.partition}:{each.offset} of {table}"
        yield from self._told

    def _read(self) -> list[Record]:
        try:
            with closing(self.watcher()) as watcher:
                return list(self._tails(watcher))
        except Retryable as failed:
            self._told.append(f"whether Kafka has more of it is not known: {failed}")
            return []

    def _tails(self, watcher: Watcher) -> Iterator[Record]:
        ranges = unsettled(watcher, self.topics, self.newest())
        for (topic, number), (begin, end) in ranges.items():
            if end - begin > MOST:
                searched = f"of {end - begin} events of {topic}/{number} the newest {MOST}"
                self._told.append(f"{searched} were searched")
            yield from watcher.records(topic, number, max(begin, end - MOST), end)


def unsettled(
    watcher: Watcher, topics: Collection[str], bookmark: Bookmark | None
) -> dict[Place, tuple[int, int]]:
    """For each partition, the first offset after a bookmark and the one after the last record."""
    settled: Positions = {} if bookmark is None else bookmark.settled
    begins, ends = flat(watcher.beginning_offsets(topics)), flat(watcher.end_offsets(topics))
    ranges = {
        place: (max(settled.get(place, 0), begins.get(place, 0)), end)
        for place, end in sorted(ends.items())
    }
    return {place: (begin, end) for place, (begin, end) in ranges.items() if begin < end}


def names(record: Record, slot: Slot, sources: Collection[KeyValue]) -> bool:
    """Whether a record names this place or one of these sources. A delete may name only one."""
    text = (record.key or b"") + b" " + (record.value or b"")
    if any(str(each).encode() in text for each in sources):
        return True
    group, *rest = slot.key
    return str(group).encode() in text and all(
        re.search(rb"[:\s]" + re.escape(str(each).encode()) + rb"[,}\s]", text) for each in rest
    )
