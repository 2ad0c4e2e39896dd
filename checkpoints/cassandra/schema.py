"""Creates or upgrades our keyspace by a session of the caller's, for tests and tools."""

from __future__ import annotations

from collections.abc import Mapping

from cassandra.cluster import Session

from checkpoints.cassandra.store import KEYSPACE, Store
from checkpoints.schema.upgrade import ONE_COPY, upgrade


def create_schema(
    session: Session, keyspace: str = KEYSPACE, replication: Mapping[str, str] = ONE_COPY
) -> None:
    """Finish every schema step in this keyspace. Raises as `upgrade` does."""
    upgrade(Store(session, keyspace), replication)
