"""The generations of our keyspace in Cassandra: a cell in each table, set by a condition.

In `pauses` and `breakers` it is a static cell of the installation's partition. In `holds`, which
has many partitions, it has a partition of its own. Because of the condition, a table that has just
been truncated gets no new generation unnoticed.
"""

from __future__ import annotations

from checkpoints.cassandra.store import Store
from reconcilers.limits.generation import GENERATIONS, GUARDS, OWNER, Generations
from reconcilers.words.model import Micros

OF_HOLDS = "generation"
"""The partition key of the generation in `holds`; no family has this name."""


class CassandraGenerations:
    """`checkpoints.generations.GenerationStore`; ``scope`` is the installation, as in pauses."""

    def __init__(self, store: Store, scope: str) -> None:
        self._store = store
        places: dict[str, tuple[str, tuple[object, ...]]] = {
            OWNER: ("name = ?", (OWNER,)),
            "pauses": ("scope = ?", (scope,)),
            "holds": ("family = ? AND bucket = ?", (OF_HOLDS, 0)),
            "breakers": ("scope = ?", (scope,)),
        }
        self._select, self._update, self._keys = {}, {}, {}
        for table in GENERATIONS:
            where, self._keys[table] = places[table]
            self._select[table] = store.prepare(
                f"SELECT generation FROM $ks.{table} WHERE {where} LIMIT 1"
            )
            self._update[table] = store.prepare_conditional(
                f"UPDATE $ks.{table} SET generation = ? WHERE {where} IF generation = ?"
            )

    def read(self) -> Generations:
        """The generations, by a small read of each table."""
        return {table: self._read(table) for table in GENERATIONS}

    def replace(self, found: Generations, by: Micros) -> bool:
        """Run a lightweight transaction for each table, until one is not applied."""
        return all(self._replace(table, found[table], by) for table in (*GUARDS, OWNER))

    def _replace(self, table: str, found: Micros | None, by: Micros) -> bool:
        doing, values = "raising the generation of our keyspace", (by, *self._keys[table], found)
        rows = self._store.rows(doing, self._update[table], *values)
        return any(bool(row[0]) for row in rows)

    def _read(self, table: str) -> Micros | None:
        doing = "reading the generation of our keyspace"
        rows = self._store.rows(doing, self._select[table], *self._keys[table])
        return next((generation for (generation,) in rows), None)
