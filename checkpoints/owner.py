"""Whose our own keyspace is: findings and memory of two installations must not meet in it.

An installation is known by the name of James's keyspace. One that was dropped and made again under
its name is the same installation; that its tables are others ends memory (`streaming.canary`).
"""

from __future__ import annotations

from typing import Protocol


class OwnerStore(Protocol):
    """Implementations: `CassandraOwner` in `checkpoints.cassandra`, `MemoryOwner`."""

    def owner(self) -> str | None:
        """The name of James's keyspace that it is of; None before the first claim."""

    def claim(self, james: str) -> str:
        """Take it for this James's keyspace, unless another has it; returns whose it is then."""
