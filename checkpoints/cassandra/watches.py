"""One row in Cassandra: since when every change has been received."""

from __future__ import annotations

from cassandra.query import PreparedStatement

from checkpoints.cassandra.store import Store
from checkpoints.clock import now_micros
from reconcilers.rows.memory import Watching
from reconcilers.words.model import Micros

ROW = "name = 'stream'"


class Watches:
    """The part of `checkpoints.lineage.Lineage` about the start of memory and its sweeps.

    A mark's write time is the beginning's plus 1 µs. A restart of memory is newer and hides the
    mark, whichever is written first.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read = store.prepare(
            f"SELECT since, swept_at, captured, listed_at, noted_at FROM $ks.watches WHERE {ROW}"
        )
        self._began = store.prepare(f"SELECT since, WRITETIME(since) FROM $ks.watches WHERE {ROW}")
        self._begin = store.prepare(
            "INSERT INTO $ks.watches (name, since, captured, noted_at, swept_at, listed_at)"
            " VALUES ('stream', ?, ?, ?, null, null)"
        )
        self._mark_swept, self._mark_listed = (
            store.prepare(f"UPDATE $ks.watches USING TIMESTAMP ? SET {half} = ? WHERE {ROW}")
            for half in ("swept_at", "listed_at")
        )

    def watching(self) -> Watching | None:
        """Since when every change has been received; None if unknown."""
        rows = self._store.rows("reading since when changes are watched", self._read)
        for since, swept_at, captured, listed_at, noted_at in rows:
            if since is not None:
                return Watching(since, swept_at, captured or "", listed_at, noted_at or 0)
        return None

    def begin(self, at: Micros | None, captured: str | None) -> None:
        """Start or restart watching at a time (µs), or stop it (None)."""
        doing = "recording since when changes are watched"
        self._store.run(doing, [(self._begin, (at, captured, now_micros()))])

    def mark_swept(self, at: Micros, since: Micros) -> None:
        """Store the end (µs) of a sweep's truth half, if watching still began at ``since``."""
        self._mark(self._mark_swept, at, since)

    def mark_listed(self, at: Micros, since: Micros) -> None:
        """Store the end (µs) of a sweep's listing half, if watching still began at ``since``."""
        self._mark(self._mark_listed, at, since)

    def _mark(self, half: PreparedStatement, at: Micros, since: Micros) -> None:
        doing = "recording the end of a sweep"
        for began, written in self._store.rows(doing, self._began):
            if began == since:
                self._store.run(doing, [(half, (written + 1, at))])
