"""The generations of our keyspace in Cassandra: a cell in each table, set by a condition.

In `pauses` and `breakers` it is a static cell of the installation's partition. In `holds`, which
has many partitions, it has a partition of its own. Because of the condition, a table that has just
been truncated gets no new generation unnoticed.
"""

from __future__ import annotations

from cassandra.query import PreparedStatement

from checkpoints.cassandra.store import Store
from reconcilers.limits.generation import GENERATIONS, GUARDS, OWNER, Generations
from reconcilers.words.model import Micros

OF_HOLDS = "generation"
"""The partition key of the generation in `holds`; no family has this name."""


class CassandraGenerations:
    """`checkpoints.generations.GenerationStore`; ``scope`` is the installation, as in pauses."""

    def __init__(self, store: Store, scope: str) -> None:
        self._store = store
        self._keys: dict[str, tuple[object, ...]] = {
            OWNER: (OWNER,),
            "pauses": (scope,),
            "holds": (OF_HOLDS, 0),
            "breakers": (scope,),
        }
        where = {
            OWNER: "name = ?",
            "pauses": "scope = ?",
            "holds": "family = ? AND bucket = ?",
            "breakers": "scope = ?",
        }
        self._select, self._update = {}, {}
        for table in GENERATIONS:
            self._select[table] = store.prepare(
                f"SELECT generation FROM $ks.{table} WHERE {where[table]} LIMIT 1"
            )
            self._update[table] = store.prepare_conditional(
                f"UPDATE $ks.{table} SET generation = ? WHERE {where[table]} IF generation = ?"
            )

    def read(self) -> Generations:
        """The generations, by a small read of each table."""
        doing = "reading the generation of our keyspace"
        return {table: self._one(doing, self._select[table], table) for table in GENERATIONS}

    def replace(self, found: Generations, by: Micros) -> bool:
        """Run a lightweight transaction for each table, until one is not applied."""
        return all(self._replace(table, found[table], by) for table in (*GUARDS, OWNER))

    def _replace(self, table: str, found: Micros | None, by: Micros) -> bool:
        doing, values = "raising the generation of our keyspace", (by, *self._keys[table], found)
        rows = self._store.rows(doing, self._update[table], *values)
        return any(bool(row[0]) for row in rows)

    def _one(self, doing: str, select: PreparedStatement, table: str) -> Micros | None:
        rows = self._store.rows(doing, select, *self._keys[table])
        return next((generation for (generation,) in rows), None)
