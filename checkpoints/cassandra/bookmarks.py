"""Bookmarks in Cassandra: a partition for each stream and day, and a pointer to the newest.

Batch times and watermarks are Spark's: they are kept in its unit, ms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from checkpoints import codec
from checkpoints.bookmarks import Bookmark, Offsets, after
from checkpoints.cassandra.store import Store
from checkpoints.clock import MICROS_A_MILLI, now_micros
from reconcilers.model import Micros

BOOKMARKS_KEPT = timedelta(days=7)
COLUMNS = "recorded_at, name, checkpoint, batch_id, batch_time, watermark, offsets"


class CassandraBookmarks:
    """`checkpoints.bookmarks.Bookmarks`. ``kept`` is for those without a name."""

    def __init__(
        self,
        store: Store,
        kept: timedelta = BOOKMARKS_KEPT,
        clock: Callable[[], Micros] = now_micros,
    ) -> None:
        self._store = store
        self._kept = int(kept.total_seconds())
        self._clock = clock
        self._insert = store.prepare(
            f"INSERT INTO $ks.bookmarks (stream, day, {COLUMNS})"
            f" VALUES ({', '.join('?' * 9)}) USING TTL ?"
        )
        self._point = store.prepare(
            "INSERT INTO $ks.bookmark_heads (stream, recorded_at) VALUES (?, ?) USING TIMESTAMP ?"
        )
        self._head = store.prepare("SELECT recorded_at FROM $ks.bookmark_heads WHERE stream = ?")
        self._of_day = store.prepare(
            f"SELECT {COLUMNS} FROM $ks.bookmarks WHERE stream = ? AND day = ?"
        )
        self._at = store.prepare(
            f"SELECT {COLUMNS} FROM $ks.bookmarks WHERE stream = ? AND day = ? AND recorded_at = ?"
        )
        names = COLUMNS.replace("recorded_at, name", "name, recorded_at")
        self._insert_named = store.prepare(
            f"INSERT INTO $ks.named_bookmarks (stream, {names}) VALUES ({', '.join('?' * 8)})"
        )
        self._of_name = store.prepare(
            f"SELECT {COLUMNS} FROM $ks.named_bookmarks WHERE stream = ? AND name = ?"
        )

    def record(self, bookmark: Bookmark) -> Bookmark:
        """Keep it as the newest: the bookmark first, then the pointer to it.

        The pointer's write timestamp is the recording time, so that a clock that stepped back
        cannot hide it behind an older one.
        """
        at = after(self._newest_at(bookmark.stream), self._clock())
        bookmark = replace(bookmark, recorded_at=at)
        values = (bookmark.stream, _day(at), at, bookmark.name, *_fields(bookmark), self._kept)
        self._store.run("recording a bookmark", [(self._insert, values)])
        self._store.run("recording a bookmark", [(self._point, (bookmark.stream, at, at))])
        return bookmark

    def newest(self, stream: str) -> Bookmark | None:
        """The one recorded last, unless it is older than bookmarks are kept."""
        at = self._newest_at(stream)
        if at is None:
            return None
        rows = self._store.rows("reading a bookmark", self._at, stream, _day(at), at)
        return next((_bookmark(stream, row) for row in rows), None)

    def recent(self, stream: str) -> list[Bookmark]:
        """Those of the newest's day and the day before, in the order they were recorded."""
        at = self._newest_at(stream)
        if at is None:
            return []
        days = (_day(at) - timedelta(days=1), _day(at))
        return [each for day in days for each in reversed(list(self._read(stream, day)))]

    def name(self, bookmark: Bookmark, name: str) -> Bookmark:
        """Keep it under a name, for good."""
        bookmark = replace(bookmark, name=name)
        values = (bookmark.stream, name, bookmark.recorded_at, *_fields(bookmark))
        self._store.run("naming a bookmark", [(self._insert_named, values)])
        return bookmark

    def named(self, stream: str, name: str) -> Bookmark | None:
        """The bookmark with this name."""
        rows = self._store.rows("reading a named bookmark", self._of_name, stream, name)
        return next((_bookmark(stream, row) for row in rows), None)

    def _newest_at(self, stream: str) -> Micros | None:
        rows = self._store.rows("reading the newest bookmark", self._head, stream)
        return next((recorded_at for (recorded_at,) in rows), None)

    def _read(self, stream: str, day: date) -> Iterator[Bookmark]:
        for row in self._store.rows("reading bookmarks", self._of_day, stream, day):
            yield _bookmark(stream, row)


def _day(at: Micros) -> date:
    return datetime.fromtimestamp(at // 1_000_000, UTC).date()


def _fields(bookmark: Bookmark) -> tuple[object, ...]:
    offsets = codec.text_of({"start": bookmark.start, "end": bookmark.end})
    times = (at // MICROS_A_MILLI for at in (bookmark.batch_time, bookmark.watermark))
    return bookmark.checkpoint, bookmark.batch_id, *times, offsets


def _bookmark(stream: str, row: tuple[object, ...]) -> Bookmark:
    columns = dict(zip(COLUMNS.split(", "), row, strict=True))
    offsets = json.loads(str(columns.pop("offsets")))
    start, end = _offsets(offsets["start"]), _offsets(offsets["end"])
    for column in ("batch_time", "watermark"):
        columns[column] = int(str(columns[column])) * MICROS_A_MILLI
    return Bookmark(stream=stream, start=start, end=end, **columns)  # type: ignore[arg-type]


def _offsets(stored: dict[str, dict[str, int]]) -> Offsets:
    """JSON has only text as keys: partitions are numbers."""
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in stored.items()
    }
