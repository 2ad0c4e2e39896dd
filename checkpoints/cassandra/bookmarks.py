"""Bookmarks in Cassandra: one row for each stream, and one for each named bookmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace

from checkpoints import codec
from checkpoints.bookmarks import Bookmark, KafkaIds, after, flat, nested, numbered
from checkpoints.cassandra.store import Store
from checkpoints.clock import now_micros
from reconcilers.capture.chain import Mark, Reached
from reconcilers.words.model import Micros

COLUMNS = "recorded_at, offsets, ids, heard"


class CassandraBookmarks:
    """`checkpoints.bookmarks.Bookmarks`. A stream's newest is read before the first record only."""

    def __init__(self, store: Store, clock: Callable[[], Micros] = now_micros) -> None:
        self._store = store
        self._clock = clock
        self._recorded_at: dict[str, Micros] = {}
        self._insert = store.prepare(
            f"INSERT INTO $ks.settled_offsets (stream, {COLUMNS}) VALUES (?, ?, ?, ?, ?)"
            " USING TIMESTAMP ?"
        )
        self._newest = store.prepare(f"SELECT {COLUMNS} FROM $ks.settled_offsets WHERE stream = ?")
        self._insert_named = store.prepare(
            f"INSERT INTO $ks.named_bookmarks (stream, name, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
        )
        self._of_name = store.prepare(
            f"SELECT {COLUMNS} FROM $ks.named_bookmarks WHERE stream = ? AND name = ?"
        )
        self._all_named = store.prepare(
            f"SELECT name, {COLUMNS} FROM $ks.named_bookmarks WHERE stream = ?"
        )
        self._forget = store.prepare(
            "DELETE FROM $ks.named_bookmarks WHERE stream = ? AND name = ?"
        )

    def record(self, bookmark: Bookmark) -> Bookmark:
        """Store it as the newest; its write timestamp is the recording time, which only grows."""
        if bookmark.stream not in self._recorded_at:
            self.newest(bookmark.stream)
        at = after(self._recorded_at.get(bookmark.stream), self._clock())
        bookmark = replace(bookmark, recorded_at=at)
        values = (bookmark.stream, *_fields(bookmark), at)
        self._recorded_at[bookmark.stream] = at  # an attempt that fails may be stored
        self._store.run("recording settled offsets", [(self._insert, values)])
        return bookmark

    def newest(self, stream: str) -> Bookmark | None:
        """The bookmark recorded last, None if there is none."""
        rows = self._store.rows("reading settled offsets", self._newest, stream)
        newest = next((_bookmark(stream, *row) for row in rows), None)
        if newest is not None:
            self._recorded_at[stream] = max(newest.recorded_at, self._recorded_at.get(stream, 0))
        return newest

    def name(self, bookmark: Bookmark, name: str) -> Bookmark:
        """Store it permanently under a name."""
        bookmark = replace(bookmark, name=name)
        values = (bookmark.stream, name, *_fields(bookmark))
        self._store.run("naming a bookmark", [(self._insert_named, values)])
        return bookmark

    def named(self, stream: str, name: str) -> Bookmark | None:
        """The bookmark with this name, None if there is none."""
        rows = self._store.rows("reading a named bookmark", self._of_name, stream, name)
        return next((replace(_bookmark(stream, *row), name=name) for row in rows), None)

    def all_named(self, stream: str) -> tuple[Bookmark, ...]:
        """The bookmarks with a name, ordered by name."""
        rows = self._store.rows("reading named bookmarks", self._all_named, stream)
        return tuple(replace(_bookmark(stream, *row), name=name) for name, *row in rows)

    def forget(self, stream: str, name: str) -> None:
        """Remove the bookmark with this name."""
        self._store.run("removing a bookmark", [(self._forget, (stream, name))])


def _fields(bookmark: Bookmark) -> tuple[object, ...]:
    ids = codec.text_of(asdict(bookmark.ids))
    heard = [[*lane, *each.mark, each.missing_since] for lane, each in bookmark.heard.items()]
    return bookmark.recorded_at, codec.text_of(nested(bookmark.settled)), ids, codec.text_of(heard)


def _bookmark(
    stream: str, recorded_at: Micros, offsets: str, ids: str | None, heard: str | None
) -> Bookmark:
    known = KafkaIds(**json.loads(ids)) if ids else KafkaIds()
    lanes = {
        (node, topic, place): Reached(Mark(number, at), since)
        for node, topic, place, number, at, since in json.loads(heard or "[]")
    }
    settled = flat(numbered(json.loads(offsets)))
    return Bookmark(stream, settled, known, recorded_at, heard=lanes)
