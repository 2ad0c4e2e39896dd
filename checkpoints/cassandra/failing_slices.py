"""Failing slices in Cassandra: one row for each stream."""

from __future__ import annotations

import json
from typing import Any

from checkpoints import codec
from checkpoints.bookmarks import flat, nested, numbered
from checkpoints.cassandra.store import Store
from checkpoints.failing_slices import FailingSlice

COLUMNS = "slice, times, unheard, since, ends, most, until"


class CassandraFailingSlices:
    """`checkpoints.failing_slices.FailingSlices`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._select = store.prepare(f"SELECT {COLUMNS} FROM $ks.failing_slices WHERE stream = ?")
        self._insert = store.prepare(
            f"INSERT INTO $ks.failing_slices (stream, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._delete = store.prepare("DELETE FROM $ks.failing_slices WHERE stream = ?")

    def of(self, stream: str) -> FailingSlice | None:
        """The failing slice of this stream, None if there is none."""
        rows = self._store.rows("reading which slice failed", self._select, stream)
        return next(map(_failing, rows), None)

    def keep(self, stream: str, failing: FailingSlice) -> None:
        """Replace the stream's row."""
        ends, until = (codec.text_of(nested(each)) for each in (failing.end, failing.until))
        told = failing.name, failing.times, failing.unheard, failing.since, ends, failing.most
        self._store.run("keeping which slice fails", [(self._insert, (stream, *told, until))])

    def forget(self, stream: str) -> None:
        """Delete the stream's row."""
        self._store.run("forgetting which slice failed", [(self._delete, (stream,))])


def _failing(row: Any) -> FailingSlice:
    name, times, unheard, since, end, most, until = row
    ended, up_to = (flat(numbered(json.loads(each))) for each in (end, until))
    return FailingSlice(name, times, unheard, since, ended, most, up_to)
