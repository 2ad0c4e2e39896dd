"""The lease in Cassandra: the only lightweight transactions of the product's own keyspace."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from cassandra.query import PreparedStatement

from checkpoints.cassandra.store import Store
from checkpoints.lease import Holder
from reconcilers.words.errors import Overloaded

ATTEMPTS = 3


class CassandraLease:
    """`checkpoints.lease.LeaseStore`. The row lives as long as its TTL, which renewal sets anew."""

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
        """Renew, else take, else say who has it.

        In this order an attempt whose answer was lost is found to have worked. One that ends while
        it is asked for is asked for again. Raises `Overloaded` when that happens every time.
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
        """End it, if this holder has it."""
        self._applied(self._leave, name, holder.id)

    def held_by(self, name: str) -> Holder | None:
        """Who holds it now, by a serial read."""
        rows = self._store.rows("reading the lease", self._read, name)
        return next((Holder(*row) for row in rows if row[0] is not None), None)

    def _applied(self, statement: PreparedStatement, *values: object) -> bool:
        rows = self._store.rows("asking for the lease", statement, *values)
        return any(bool(row[0]) for row in rows)
