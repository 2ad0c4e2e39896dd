"""Failing slices in Cassandra: one row for each stream."""

from __future__ import annotations

import json
from collections.abc import Mapping

from checkpoints import codec
from checkpoints.bookmarks import Place, flat, nested
from checkpoints.cassandra.store import Store
from checkpoints.failing import FailingSlice

COLUMNS = "slice, times, unheard, since, ends, most, until"


class CassandraFailingSlices:
    """`checkpoints.failing.FailingSlices`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._select = store.prepare(f"SELECT {COLUMNS} FROM $ks.failing_slices WHERE stream = ?")
        self._insert = store.prepare(
            f"INSERT INTO $ks.failing_slices (stream, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._delete = store.prepare("DELETE FROM $ks.failing_slices WHERE stream = ?")

    def of(self, stream: str) -> FailingSlice | None:
        """What this stream has left."""
        rows = self._store.rows("reading which slice failed", self._select, stream)
        return next((_failing(*row) for row in rows), None)

    def keep(self, stream: str, failing: FailingSlice) -> None:
        """Replace it."""
        values = (
            stream,
            failing.name,
            failing.times,
            failing.unheard,
            failing.since,
            codec.text_of(nested(failing.end)),
            failing.most,
            codec.text_of(nested(failing.until)),
        )
        self._store.run("keeping which slice fails", [(self._insert, values)])

    def forget(self, stream: str) -> None:
        """Nothing fails."""
        self._store.run("forgetting which slice failed", [(self._delete, (stream,))])


def _failing(name: str, times: int, unheard: int, since: int, *spans: str | int) -> FailingSlice:
    end, most, until = spans
    return FailingSlice(
        name, times, unheard, since, _positions(str(end)), int(most), _positions(str(until))
    )


def _positions(text: str) -> Mapping[Place, int]:
    """JSON has only text as keys: partitions are numbers."""
    stored = json.loads(text)
    return flat(
        {topic: {int(at): end for at, end in each.items()} for topic, each in stored.items()}
    )
