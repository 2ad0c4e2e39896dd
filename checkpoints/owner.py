"""The owner of our keyspace: findings and lineage of two installations must not mix (the port).

An installation is named by James's keyspace. A keyspace that was recreated under its name is the
same installation; the change of its tables ends lineage (`streaming.canary`).
"""

from __future__ import annotations

from typing import Protocol


class OwnerStore(Protocol):
    """Implementations: `checkpoints.cassandra.CassandraOwner`, and the fake `MemoryOwner`."""

    def owner(self) -> str | None:
        """The name of James's keyspace that owns it; None before the first claim."""

    def claim(self, james: str) -> str:
        """Claim it for this keyspace of James's unless it has an owner; return the owner."""
