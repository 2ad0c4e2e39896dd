"""The lease in Cassandra, by lightweight transactions."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from cassandra.query import PreparedStatement

from checkpoints.cassandra.store import Store
from checkpoints.lease import Holder
from reconcilers.words.errors import Overloaded

ATTEMPTS = 3


class CassandraLease:
    """`checkpoints.lease.LeaseStore`. The row lasts for its TTL, which each renewal resets."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._renew = store.prepare_conditional(
            "UPDATE $ks.lease USING TTL ? SET holder = ?, host = ? WHERE name = ? IF holder = ?"
        )
        self._take = store.prepare_conditional(
            "INSERT INTO $ks.lease (name, holder, host) VALUES (?, ?, ?) IF NOT EXISTS USING TTL ?"
        )
        self._leave = store.prepare_conditional(
            "DELETE FROM $ks.lease WHERE name = ? IF holder = ?"
        )
        self._read = store.prepare_serial("SELECT holder, host FROM $ks.lease WHERE name = ?")

    def take(self, name: str, holder: Holder, lasts: timedelta) -> Holder:
        """Renew the lease, or take it, or return its holder.

        In this order, a repeated attempt finds that an unanswered one succeeded. If the lease ends
        meanwhile, it is requested again. Raises `Overloaded` if that happens every time.
        """
        seconds = ceil(lasts.total_seconds())
        for _ in range(ATTEMPTS):
            if self._applied(self._renew, seconds, holder.id, holder.host, name, holder.id):
                return holder
            if self._applied(self._take, name, holder.id, holder.host, seconds):
                return holder
            other = self.held_by(name)
            if other is not None:
                return other
        raise Overloaded(f"the lease {name} ended each time it was asked for: ask again")

    def leave(self, name: str, holder: Holder) -> None:
        """End it if this holder has it."""
        self._applied(self._leave, name, holder.id)

    def held_by(self, name: str) -> Holder | None:
        """The current holder, by a serial read; None if there is none."""
        rows = self._store.rows("reading the lease", self._read, name)
        return next((Holder(*row) for row in rows if row[0] is not None), None)

    def _applied(self, statement: PreparedStatement, *values: object) -> bool:
        rows = self._store.rows("asking for the lease", statement, *values)
        return any(bool(row[0]) for row in rows)
