"""The owner of our own keyspace in memory: the fake of `checkpoints.owner`."""

from __future__ import annotations


class MemoryOwner:
    """`checkpoints.owner.OwnerStore` of one process."""

    def __init__(self) -> None:
        self._owner: str | None = None

    def owner(self) -> str | None:
        return self._owner

    def claim(self, james: str) -> str:
        self._owner = self._owner or james
        return self._owner
