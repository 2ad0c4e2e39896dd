"""The owner of our keyspace in Cassandra: one row, set by a lightweight transaction.

The row may exist without an owner: in a truncated table, writing a generation creates it.
"""

from __future__ import annotations

from checkpoints.cassandra.store import Store


class CassandraOwner:
    """`checkpoints.owner.OwnerStore`. Raises `Refused` if the table does not exist yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read = store.prepare_serial("SELECT james FROM $ks.owner WHERE name = 'owner'")
        self._take = store.prepare_conditional(
            "UPDATE $ks.owner SET james = ? WHERE name = 'owner' IF james = null"
        )

    def owner(self) -> str | None:
        """The name of James's keyspace that owns it; None before the first claim."""
        rows = self._store.rows("reading whose keyspace this is", self._read)
        return next((james for (james,) in rows), None)

    def claim(self, james: str) -> str:
        """Claim it unless it has an owner; return the owner, read again if the answer was lost."""
        if self.owner() is None:
            list(self._store.rows("taking our own keyspace", self._take, james))
        return self.owner() or james
