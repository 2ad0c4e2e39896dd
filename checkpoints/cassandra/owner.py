"""The owner of our own keyspace in Cassandra: one row, taken by a lightweight transaction.

The row may be there and name nobody: a generation makes it where the table was truncated.
"""

from __future__ import annotations

from checkpoints.cassandra.store import Store


class CassandraOwner:
    """`checkpoints.owner.OwnerStore`. Raises `Refused` where the table is not there yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read = store.prepare_serial("SELECT james FROM $ks.owner WHERE name = 'owner'")
        self._take = store.prepare_conditional(
            "UPDATE $ks.owner SET james = ? WHERE name = 'owner' IF james = null"
        )

    def owner(self) -> str | None:
        """The name of James's keyspace that it is of."""
        rows = self._store.rows("reading whose keyspace this is", self._read)
        return next((james for (james,) in rows), None)

    def claim(self, james: str) -> str:
        """Take it, unless another has it; the answer of the transaction may be lost, a read's not.

        So it is read first and last.
        """
        if self.owner() is None:
            list(self._store.rows("taking our own keyspace", self._take, james))
        return self.owner() or james
