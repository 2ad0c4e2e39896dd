"""Losses in Cassandra: one partition, a row for each loss."""

from __future__ import annotations

from datetime import timedelta

from checkpoints.cassandra.store import Store
from checkpoints.losses import Loss
from reconcilers.words.model import Micros

KEPT = timedelta(days=365)


class CassandraLosses:
    """`checkpoints.losses.Losses`, in the partition ``name``."""

    def __init__(self, store: Store, name: str = "stream") -> None:
        self._store, self._name = store, name
        self._insert = store.prepare(
            "INSERT INTO $ks.losses (name, at, why) VALUES (?, ?, ?)"
            f" USING TTL {int(KEPT.total_seconds())}"
        )
        self._select = store.prepare("SELECT at, why FROM $ks.losses WHERE name = ? AND at >= ?")

    def record(self, loss: Loss) -> None:
        """Write one row."""
        self._store.run("recording a loss", [(self._insert, (self._name, loss.at, loss.why))])

    def since(self, at: Micros) -> tuple[Loss, ...]:
        """The losses of this time (µs) or later, newest first, as the table orders them."""
        rows = self._store.rows("reading losses", self._select, self._name, at)
        return tuple(Loss(at, why) for at, why in rows)
